-- Whether the person undid a change, or made it again, and the model has not been told.
ALTER TABLE changes ADD COLUMN untold INTEGER NOT NULL DEFAULT 0;
