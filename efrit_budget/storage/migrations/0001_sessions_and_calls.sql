CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  root TEXT NOT NULL,
  title TEXT NOT NULL DEFAULT '',
  limits TEXT NOT NULL,
  denied TEXT NOT NULL DEFAULT '[]',
  created REAL NOT NULL,
  touched REAL NOT NULL,
  closed REAL,
  purged REAL,
  note TEXT
) STRICT;

CREATE INDEX sessions_by_root ON sessions (root, touched);

-- One row for each use of a tool: announced by a reply of the model, run, and kept.
CREATE TABLE calls (
  session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  tool_use_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  arguments TEXT NOT NULL,
  owner TEXT,
  begun REAL,
  ended REAL,
  status TEXT,
  message TEXT,
  number INTEGER,
  page_start INTEGER,
  page_end INTEGER,
  delivered TEXT,
  page TEXT,
  tokens INTEGER,
  exact INTEGER NOT NULL DEFAULT 0,
  raw INTEGER NOT NULL DEFAULT 0,
  compressed TEXT,
  compressed_raw INTEGER NOT NULL DEFAULT 0,
  same_as INTEGER,
  lisp TEXT,
  todos TEXT,
  turn INTEGER,
  ordinal INTEGER,
  place INTEGER,
  state TEXT NOT NULL DEFAULT 'announced',
  pinned INTEGER NOT NULL DEFAULT 0,
  wish TEXT,
  last_use INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (session_id, tool_use_id)
) STRICT;

CREATE INDEX calls_by_number ON calls (session_id, number);
CREATE INDEX calls_by_turn ON calls (session_id, turn, ordinal);
CREATE INDEX calls_in_window ON calls (session_id, turn, ordinal)
  WHERE state IN ('full', 'compressed') AND turn IS NOT NULL;
CREATE INDEX calls_announced ON calls (session_id) WHERE state = 'announced';
