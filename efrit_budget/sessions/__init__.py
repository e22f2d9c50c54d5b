"""Sessions and the calls made in them, as they are kept in the database."""
