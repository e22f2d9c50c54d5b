"""Store and find observations across sessions; write context packs."""
