-- The words of the index by spelling, for those near to a word that was not found.
CREATE VIRTUAL TABLE observations_vocabulary USING fts5vocab(observations_spelled, row);

-- A topic key is looked up whatever the project.
CREATE INDEX observations_by_key ON observations (topic_key)
  WHERE deleted IS NULL AND topic_key IS NOT NULL;
