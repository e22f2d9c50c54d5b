-- A turn costs the same however long the session is: long texts stand behind the small columns,
-- so that what counts and filters is read without them, and each question that is asked of a whole
-- session in every turn has an index that answers it alone.
DROP VIEW remembered_prompts;

CREATE TABLE calls_anew (
  session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  tool_use_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  owner TEXT,
  begun REAL,
  ended REAL,
  status TEXT,
  number INTEGER,
  page_start INTEGER,
  page_end INTEGER,
  tokens INTEGER,
  exact INTEGER NOT NULL DEFAULT 0,
  raw INTEGER NOT NULL DEFAULT 0,
  compressed_raw INTEGER NOT NULL DEFAULT 0,
  same_as INTEGER,
  turn INTEGER,
  ordinal INTEGER,
  place INTEGER,
  state TEXT NOT NULL DEFAULT 'announced',
  pinned INTEGER NOT NULL DEFAULT 0,
  wish TEXT,
  last_use INTEGER NOT NULL DEFAULT 0,
  compressed TEXT,
  arguments TEXT NOT NULL,
  message TEXT,
  page TEXT,
  lisp TEXT,
  todos TEXT,
  delivered TEXT,
  PRIMARY KEY (session_id, tool_use_id)
) STRICT;

INSERT INTO calls_anew (session_id, tool_use_id, tool, owner, begun, ended, status, number,
  page_start, page_end, tokens, exact, raw, compressed_raw, same_as, turn, ordinal, place, state,
  pinned, wish, last_use, compressed, arguments, message, page, lisp, todos, delivered)
SELECT session_id, tool_use_id, tool, owner, begun, ended, status, number,
  page_start, page_end, tokens, exact, raw, compressed_raw, same_as, turn, ordinal, place, state,
  pinned, wish, last_use, compressed, arguments, message, page, lisp, todos, delivered
FROM calls ORDER BY rowid;

DROP TABLE calls;
ALTER TABLE calls_anew RENAME TO calls;

CREATE INDEX calls_by_number ON calls (session_id, number);
CREATE INDEX calls_by_turn ON calls (session_id, turn, ordinal);
CREATE INDEX calls_in_window ON calls (session_id, turn, ordinal)
  WHERE state IN ('full', 'compressed') AND turn IS NOT NULL;
CREATE INDEX calls_announced ON calls (session_id, turn) WHERE state = 'announced';
CREATE INDEX calls_outside ON calls (session_id)
  WHERE turn IS NULL AND state IN ('full', 'compressed');
CREATE INDEX calls_that_gave_way ON calls (session_id, raw, exact, compressed_raw, state, turn)
  WHERE turn IS NOT NULL AND state IN ('compressed', 'gone');
CREATE INDEX calls_sent ON calls (session_id) WHERE place IS NOT NULL OR wish IS NOT NULL;
CREATE INDEX calls_pinned ON calls (session_id) WHERE pinned = 1;
CREATE INDEX calls_with_todos ON calls (session_id, ended) WHERE todos IS NOT NULL;
-- The work log from its newest end: what has not ended comes first.
CREATE INDEX calls_by_end ON calls
  (session_id, ended IS NULL, ended, number, turn, ordinal, state);

CREATE TABLE segments_anew (
  session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  turn INTEGER NOT NULL,
  phase INTEGER NOT NULL,
  role TEXT NOT NULL,
  raw INTEGER NOT NULL,
  bare_raw INTEGER NOT NULL,
  exact INTEGER,
  number INTEGER,
  place INTEGER,
  state TEXT NOT NULL DEFAULT 'full',
  last_use INTEGER NOT NULL DEFAULT 0,
  content TEXT NOT NULL,
  PRIMARY KEY (session_id, turn, phase)
) STRICT;

INSERT INTO segments_anew (session_id, turn, phase, role, raw, bare_raw, exact, number, place,
  state, last_use, content)
SELECT session_id, turn, phase, role, raw, bare_raw, exact, number, place, state, last_use, content
FROM segments ORDER BY session_id, turn, phase;

DROP TABLE segments;
ALTER TABLE segments_anew RENAME TO segments;

CREATE INDEX segments_in_window ON segments (session_id, turn, phase) WHERE state <> 'gone';
CREATE INDEX segments_gone ON segments (session_id, turn, phase) WHERE state = 'gone';
CREATE INDEX segments_that_gave_way
  ON segments (session_id, phase, raw, exact, bare_raw, state) WHERE state <> 'full';
CREATE INDEX segments_sent ON segments (session_id) WHERE place IS NOT NULL;

CREATE VIEW remembered_prompts AS
SELECT segments.session_id AS session, segments.turn, turns.begun AS asked,
  (SELECT json_extract(value, '$.text') FROM json_each(segments.content)
   WHERE json_extract(value, '$.type') = 'text' ORDER BY key DESC LIMIT 1) AS text
FROM segments JOIN turns ON turns.session_id = segments.session_id
  AND turns.number = segments.turn
WHERE segments.phase = 0 AND segments.role = 'user';

-- What had left the window when the epoch began; NULL until it is counted.
ALTER TABLE windows ADD COLUMN left_window INTEGER;

-- The request a turn was begun with, so that one that is sent again is known.
ALTER TABLE turns ADD COLUMN request BLOB;

-- Whether the person gave the session its name; when the person was told that it will expire; and
-- whether its contents are being removed, a part at a time.
ALTER TABLE sessions ADD COLUMN renamed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN told REAL;
ALTER TABLE sessions ADD COLUMN expiring INTEGER NOT NULL DEFAULT 0;

-- Emacs names a session after the first line of the first request; any other name is the person's.
UPDATE sessions SET renamed = 1 WHERE title <> '' AND NOT EXISTS (
  SELECT 1 FROM remembered_prompts WHERE session = sessions.id
  AND instr(text, substr(rtrim(title, '…'), 1, 60)) > 0
);
