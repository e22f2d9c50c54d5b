-- What reading has cost, since the epoch began, of the tokens that a rewrite would have freed; in
-- tokens at the price of the input.
ALTER TABLE windows ADD COLUMN carried REAL NOT NULL DEFAULT 0;
