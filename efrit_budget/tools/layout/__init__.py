"""Lay out what tools found as bodies of results."""
