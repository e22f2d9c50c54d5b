"""Tests that use the Emacs package as a person would: with keys and eyes."""
