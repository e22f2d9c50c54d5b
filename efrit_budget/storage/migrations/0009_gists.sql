-- What came of a call in a few words for the person, such as "12 matches", and "denied" or
-- "stopped" if the call did not run to its end.
ALTER TABLE calls ADD COLUMN gist TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN ending TEXT;
