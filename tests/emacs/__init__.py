"""Tests that use the Emacs package as a person would, by keys and by reading the screen."""
