-- How many changes and checkpoints a session was given; its line keeps the count when they go.
ALTER TABLE sessions ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN checkpoints INTEGER NOT NULL DEFAULT 0;

-- What files held before and after they were changed, each content once.
CREATE TABLE images (
  sha256 TEXT PRIMARY KEY,
  size INTEGER NOT NULL,
  data BLOB NOT NULL
) STRICT;

CREATE TABLE changes (
  session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  tool_use_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  kind TEXT NOT NULL,
  path TEXT NOT NULL,
  file TEXT NOT NULL,
  moved_to TEXT,
  moved_file TEXT,
  folders TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'begun',
  created REAL NOT NULL,
  mode_before INTEGER,
  mode_after INTEGER,
  added INTEGER,
  removed INTEGER,
  PRIMARY KEY (session_id, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX changes_by_use ON changes (session_id, tool_use_id);

CREATE TABLE held_images (
  session_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  role TEXT NOT NULL,
  sha256 TEXT NOT NULL REFERENCES images (sha256),
  PRIMARY KEY (session_id, number, role),
  FOREIGN KEY (session_id, number) REFERENCES changes (session_id, number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX held_images_by_content ON held_images (sha256);

CREATE TRIGGER images_that_nothing_holds AFTER DELETE ON held_images
WHEN NOT EXISTS (SELECT 1 FROM held_images WHERE sha256 = OLD.sha256)
BEGIN
  DELETE FROM images WHERE sha256 = OLD.sha256;
END;

CREATE TABLE checkpoints (
  session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  label TEXT NOT NULL,
  after INTEGER NOT NULL,
  created REAL NOT NULL,
  PRIMARY KEY (session_id, number)
) STRICT, WITHOUT ROWID;
