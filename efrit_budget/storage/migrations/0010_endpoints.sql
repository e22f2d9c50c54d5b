-- The endpoint of the latest request, and the provider that each turn was paid to; NULL and '' for
-- a client that does not describe its endpoint.
ALTER TABLE windows ADD COLUMN endpoint TEXT;
ALTER TABLE turns ADD COLUMN provider TEXT NOT NULL DEFAULT '';
