"""Tests of the room of that name."""
