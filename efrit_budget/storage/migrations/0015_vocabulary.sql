-- The words of the index by spelling, for those near to a word that was not found.
CREATE VIRTUAL TABLE observations_vocabulary USING fts5vocab(observations_spelled, row);
