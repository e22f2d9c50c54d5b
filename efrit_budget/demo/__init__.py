"""A scripted model behind a real Messages API endpoint on loopback."""
