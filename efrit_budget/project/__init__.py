"""The project's root, its names, and the programs run in it."""
