"""The scripted model, tried as the real API's clients would try it."""
