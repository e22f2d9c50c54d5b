"""Starts child processes within their limits, and ends them with all they started."""
