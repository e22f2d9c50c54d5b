"""Tests of the project room."""
