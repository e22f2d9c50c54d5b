"""Tests of stored results and their pages."""
