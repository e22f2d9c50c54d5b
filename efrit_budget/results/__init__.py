"""Store results, cut pages and write footers."""
