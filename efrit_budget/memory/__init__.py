"""What sessions learned, kept across sessions: observations, retrieval, context packs."""
