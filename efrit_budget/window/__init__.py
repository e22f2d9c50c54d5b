"""The conversation as it stands in the model's window, and how it is rewritten."""
