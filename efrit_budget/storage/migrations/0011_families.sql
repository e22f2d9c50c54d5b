-- The family of tokenizers in which the texts of a window are estimated; until now all were
-- estimated for Claude's.
ALTER TABLE windows ADD COLUMN family TEXT NOT NULL DEFAULT 'claude';

-- What was learnt of a model at a provider; '' for a client that does not name its provider. What
-- was learnt of other models than Claude's corrected estimates of another family.
CREATE TABLE calibration_anew (
  provider TEXT NOT NULL DEFAULT '',
  model TEXT NOT NULL,
  factor REAL NOT NULL,
  samples INTEGER NOT NULL,
  error REAL NOT NULL,
  frame REAL NOT NULL DEFAULT 16,
  PRIMARY KEY (provider, model)
) STRICT;

INSERT INTO calibration_anew (model, factor, samples, error, frame)
SELECT model, factor, samples, error, frame FROM calibration WHERE model LIKE 'claude%';

DROP TABLE calibration;
ALTER TABLE calibration_anew RENAME TO calibration;
