"""The SQLite connection, its schema and migrations."""
