"""A real model of 135 million parameters, and twenty sessions with it."""
