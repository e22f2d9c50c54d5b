"""Tests of the conversation as it stands in the model's window."""
