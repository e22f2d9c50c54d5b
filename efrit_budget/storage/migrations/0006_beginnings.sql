-- The same words as they are spelled: a stem is no place to look for how a word begins, as
-- "authenti" begins authentication, of which the stem is "authent". Beginnings of one and two
-- letters, which very many words have, are indexed themselves.
CREATE VIRTUAL TABLE observations_spelled USING fts5(
  title, tags, content, content='observations', content_rowid='id',
  tokenize='unicode61 remove_diacritics 2', prefix='1 2'
);

INSERT INTO observations_spelled (observations_spelled, rank)
VALUES ('rank', 'bm25(3.0, 1.0, 1.0)');

INSERT INTO observations_spelled (rowid, title, tags, content)
SELECT id, title, tags, content FROM observations WHERE deleted IS NULL;

CREATE TRIGGER observations_saved_spelled AFTER INSERT ON observations
WHEN new.deleted IS NULL BEGIN
  INSERT INTO observations_spelled (rowid, title, tags, content)
  VALUES (new.id, new.title, new.tags, new.content);
END;

CREATE TRIGGER observations_changing_spelled
BEFORE UPDATE OF title, tags, content, deleted ON observations
WHEN old.deleted IS NULL BEGIN
  INSERT INTO observations_spelled (observations_spelled, rowid, title, tags, content)
  VALUES ('delete', old.id, old.title, old.tags, old.content);
END;

CREATE TRIGGER observations_changed_spelled
AFTER UPDATE OF title, tags, content, deleted ON observations
WHEN new.deleted IS NULL BEGIN
  INSERT INTO observations_spelled (rowid, title, tags, content)
  VALUES (new.id, new.title, new.tags, new.content);
END;

-- A timeline is in the order of time, whatever was imported when.
DROP INDEX observations_by_session;
CREATE INDEX observations_by_session ON observations (session, project, created, id, deleted)
  WHERE deleted IS NULL;

-- Whether what is imported is here already.
CREATE INDEX observations_by_moment ON observations (created);
