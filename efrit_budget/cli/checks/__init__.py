"""What `doctor` looks at: the machine's programs and packages, and this person's files."""
