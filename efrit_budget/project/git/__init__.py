"""Runs git in somebody else's repository, and reads what it prints."""
