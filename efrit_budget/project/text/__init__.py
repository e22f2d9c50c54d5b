"""Reads text files: encodings, lines, definitions, what a terminal would show."""
