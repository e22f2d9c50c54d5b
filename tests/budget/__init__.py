"""Tests of the budget room."""
