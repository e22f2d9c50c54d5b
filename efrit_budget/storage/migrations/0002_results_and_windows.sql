-- What results hold, stored once however many results hold it.
CREATE TABLE blobs (
  hash TEXT PRIMARY KEY,
  size INTEGER NOT NULL,
  data BLOB NOT NULL
) STRICT;

CREATE TABLE results (
  session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  blob TEXT NOT NULL REFERENCES blobs (hash),
  tool TEXT NOT NULL,
  created REAL NOT NULL,
  marks BLOB,
  PRIMARY KEY (session_id, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX results_by_blob ON results (blob);

-- One row for each session: what the next prompt is made of, beside the pieces themselves.
CREATE TABLE windows (
  session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
  clock INTEGER NOT NULL DEFAULT 0,
  next_number INTEGER NOT NULL DEFAULT 1,
  epoch INTEGER NOT NULL DEFAULT 0,
  turn INTEGER NOT NULL DEFAULT 0,
  turn_ended INTEGER NOT NULL DEFAULT 0,
  next_place INTEGER NOT NULL DEFAULT 0,
  model TEXT,
  client_system TEXT,
  registered TEXT NOT NULL DEFAULT '[]',
  tool_set TEXT,
  system TEXT,
  tools TEXT,
  system_raw INTEGER NOT NULL DEFAULT 0,
  head TEXT,
  head_raw INTEGER NOT NULL DEFAULT 0,
  must_rewrite INTEGER NOT NULL DEFAULT 0,
  noticed INTEGER NOT NULL DEFAULT 0,
  band TEXT NOT NULL DEFAULT 'ample',
  warned TEXT NOT NULL DEFAULT 'ample',
  in_prompt INTEGER NOT NULL DEFAULT 0,
  kept INTEGER NOT NULL DEFAULT 0,
  least INTEGER NOT NULL DEFAULT 0,
  turn_tokens INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE turns (
  session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  model TEXT NOT NULL,
  begun REAL NOT NULL,
  ended REAL,
  aborted INTEGER NOT NULL DEFAULT 0,
  raw INTEGER NOT NULL,
  exact INTEGER NOT NULL,
  usage TEXT,
  stop_reason TEXT,
  PRIMARY KEY (session_id, number)
) STRICT, WITHOUT ROWID;

-- The person's requests, the model's replies and the notices; results stand in calls.
CREATE TABLE segments (
  session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  turn INTEGER NOT NULL,
  phase INTEGER NOT NULL,
  role TEXT NOT NULL,
  content TEXT NOT NULL,
  raw INTEGER NOT NULL,
  bare_raw INTEGER NOT NULL,
  exact INTEGER,
  number INTEGER,
  place INTEGER,
  state TEXT NOT NULL DEFAULT 'full',
  last_use INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (session_id, turn, phase)
) STRICT, WITHOUT ROWID;

CREATE INDEX segments_in_window ON segments (session_id, turn, phase) WHERE state <> 'gone';

CREATE TABLE calibration (
  model TEXT PRIMARY KEY,
  factor REAL NOT NULL,
  samples INTEGER NOT NULL,
  error REAL NOT NULL
) STRICT;
