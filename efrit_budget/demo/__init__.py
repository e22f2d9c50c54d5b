"""A scripted model behind a real endpoint on loopback, which speaks two APIs."""
