"""Open, list and close sessions in the database; expire old ones."""
