-- What sessions have beyond conversations, and how far retention has come.

ALTER TABLE threads ADD COLUMN agent_id TEXT;
ALTER TABLE threads ADD COLUMN status TEXT NOT NULL DEFAULT 'active'
    CHECK (status IN ('active', 'paused', 'completed', 'failed'));
ALTER TABLE threads ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
ALTER TABLE threads ADD COLUMN ended_at TEXT;
ALTER TABLE threads ADD COLUMN expires_at TEXT;

-- Entries before `first_seq` were deleted by retention; the entries that stood behind them begin their branches.
ALTER TABLE threads ADD COLUMN first_seq INTEGER NOT NULL DEFAULT 1;
