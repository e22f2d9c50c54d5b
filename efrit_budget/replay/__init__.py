"""Replays recorded sessions: counts and prices what would have been sent, here and elsewhere."""
