"""Tests of the work log."""
