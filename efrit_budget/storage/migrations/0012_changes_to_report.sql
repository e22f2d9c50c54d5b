-- Whether the person undid a change, or made it again, and the model has not been told.
ALTER TABLE changes ADD COLUMN to_report INTEGER NOT NULL DEFAULT 0;
