"""Starts child processes within limits, and ends each with all that it started."""
