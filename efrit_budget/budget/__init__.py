"""Estimating tokens, the tiers and the ledger."""
