"""Define tools, find them and lay out their text."""
