"""Tests of the settings room."""
