"""Stored results, their pages and their recall."""
