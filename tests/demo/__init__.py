"""Tests of the scripted model, used as clients of the real API would use it."""
