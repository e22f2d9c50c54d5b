"""Other MCP servers: their processes, their tools, and their replies as they are recorded."""
