"""Store turns and tool calls; plan, rewrite and assemble the model's window."""
