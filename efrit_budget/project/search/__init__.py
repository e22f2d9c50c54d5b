"""Lists and searches files with git and rg."""
