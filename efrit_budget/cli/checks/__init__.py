"""The checks of `doctor`: programs, packages, and the person's files."""
