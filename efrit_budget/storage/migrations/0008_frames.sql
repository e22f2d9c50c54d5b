-- What a model's prompt takes for each result beside its text; the first value is measured.
ALTER TABLE calibration ADD COLUMN frame REAL NOT NULL DEFAULT 16;
