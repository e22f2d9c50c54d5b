-- The tools of other MCP servers in a session, as they are offered to the model.
ALTER TABLE windows ADD COLUMN served TEXT NOT NULL DEFAULT '{}';
