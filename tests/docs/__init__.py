"""The documents, held against what they describe."""
