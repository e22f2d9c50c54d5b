"""The MCP server: the sidecar's tools for other clients than Emacs."""
