"""What a tool is, and how tools are found."""
