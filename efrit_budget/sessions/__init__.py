"""Sessions in the database."""
