"""The Messages API: its requests, rules, replies and errors."""
