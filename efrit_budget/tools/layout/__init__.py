"""Lay out the findings of tools as bodies of results."""
