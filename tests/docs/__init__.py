"""Tests that compare the documents with the program."""
