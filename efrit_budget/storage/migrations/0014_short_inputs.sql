-- The estimate of a reply whose long inputs are shortened; NULL where none is long.
ALTER TABLE segments ADD COLUMN short_raw INTEGER;
