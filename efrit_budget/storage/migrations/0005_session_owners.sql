-- The mark of the process that works in a session; see storage/owner.py.
ALTER TABLE sessions ADD COLUMN owner TEXT;
