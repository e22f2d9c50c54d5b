"""All settings: their bounds, values and sources."""
