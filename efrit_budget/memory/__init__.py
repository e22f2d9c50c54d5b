"""Observations that sessions saved, how they are found, and context packs."""
