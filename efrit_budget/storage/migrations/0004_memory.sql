-- What sessions learned. The content stands last, so that what ranks and filters is read without it.
CREATE TABLE observations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  project TEXT NOT NULL,
  scope TEXT NOT NULL,
  updated REAL NOT NULL,
  importance REAL NOT NULL,
  accesses INTEGER NOT NULL DEFAULT 0,
  accessed REAL,
  deleted REAL,
  created REAL NOT NULL,
  revision INTEGER NOT NULL DEFAULT 1,
  duplicates INTEGER NOT NULL DEFAULT 0,
  session TEXT NOT NULL,
  tool TEXT NOT NULL,
  topic_key TEXT,
  digest BLOB NOT NULL,
  tags TEXT NOT NULL,
  title TEXT NOT NULL,
  content TEXT NOT NULL
) STRICT;

-- These hold what filters and ranks, so that nothing else is read for it.
CREATE INDEX observations_by_time
  ON observations (updated, importance, accesses, scope, kind, deleted)
  WHERE deleted IS NULL;
CREATE INDEX observations_by_project
  ON observations (project, updated, importance, accesses, scope, kind, deleted)
  WHERE deleted IS NULL;
CREATE INDEX observations_deleted
  ON observations (project, scope, kind, deleted) WHERE deleted IS NOT NULL;
CREATE INDEX observations_by_session ON observations (session, project, id, deleted)
  WHERE deleted IS NULL;
CREATE INDEX observations_by_digest ON observations (digest, updated);
CREATE UNIQUE INDEX observations_by_topic ON observations (project, scope, topic_key)
  WHERE deleted IS NULL AND topic_key IS NOT NULL;

-- What an observation was before it was saved again under its topic key.
CREATE TABLE revisions (
  observation INTEGER NOT NULL REFERENCES observations (id) ON DELETE CASCADE,
  revision INTEGER NOT NULL,
  kind TEXT NOT NULL,
  importance REAL NOT NULL,
  updated REAL NOT NULL,
  session TEXT NOT NULL,
  tool TEXT NOT NULL,
  tags TEXT NOT NULL,
  title TEXT NOT NULL,
  content TEXT NOT NULL,
  PRIMARY KEY (observation, revision)
) STRICT;

CREATE TABLE relations (
  observation INTEGER NOT NULL REFERENCES observations (id) ON DELETE CASCADE,
  related INTEGER NOT NULL REFERENCES observations (id) ON DELETE CASCADE,
  PRIMARY KEY (observation, related)
) STRICT, WITHOUT ROWID;

CREATE INDEX relations_back ON relations (related);

-- The words of what is not deleted.
CREATE VIRTUAL TABLE observations_words USING fts5(
  title, tags, content, content='observations', content_rowid='id',
  tokenize='porter unicode61 remove_diacritics 2'
);

-- The title counts three times.
INSERT INTO observations_words (observations_words, rank) VALUES ('rank', 'bm25(3.0, 1.0, 1.0)');

CREATE TRIGGER observations_saved AFTER INSERT ON observations
WHEN new.deleted IS NULL BEGIN
  INSERT INTO observations_words (rowid, title, tags, content)
  VALUES (new.id, new.title, new.tags, new.content);
END;

CREATE TRIGGER observations_changing BEFORE UPDATE OF title, tags, content, deleted ON observations
WHEN old.deleted IS NULL BEGIN
  INSERT INTO observations_words (observations_words, rowid, title, tags, content)
  VALUES ('delete', old.id, old.title, old.tags, old.content);
END;

CREATE TRIGGER observations_changed AFTER UPDATE OF title, tags, content, deleted ON observations
WHEN new.deleted IS NULL BEGIN
  INSERT INTO observations_words (rowid, title, tags, content)
  VALUES (new.id, new.title, new.tags, new.content);
END;

-- The sessions and what a person asked in them, as memory shows them: under the project's name,
-- which is that of its folder.
CREATE VIEW remembered_sessions AS
SELECT id, title, created, touched, closed,
  replace(root, rtrim(root, replace(root, '/', '')), '') AS project
FROM sessions WHERE purged IS NULL;

-- Of a request the last text is the person's own: what went with it stands before.
CREATE VIEW remembered_prompts AS
SELECT segments.session_id AS session, segments.turn, turns.begun AS asked,
  (SELECT json_extract(value, '$.text') FROM json_each(segments.content)
   WHERE json_extract(value, '$.type') = 'text' ORDER BY key DESC LIMIT 1) AS text
FROM segments JOIN turns ON turns.session_id = segments.session_id
  AND turns.number = segments.turn
WHERE segments.phase = 0 AND segments.role = 'user';
