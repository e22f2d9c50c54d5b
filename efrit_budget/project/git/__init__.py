"""Runs git in repositories that are not trusted, and parses its output."""
