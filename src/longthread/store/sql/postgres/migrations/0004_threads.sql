-- What sessions have beyond conversations, and how far retention has come.

ALTER TABLE threads ADD COLUMN agent_id TEXT COLLATE "C";
ALTER TABLE threads ADD COLUMN status TEXT COLLATE "C" NOT NULL DEFAULT 'active'
    CHECK (status IN ('active', 'paused', 'completed', 'failed'));
ALTER TABLE threads ADD COLUMN metadata TEXT COLLATE "C" NOT NULL DEFAULT '{}';
ALTER TABLE threads ADD COLUMN ended_at TEXT COLLATE "C";
ALTER TABLE threads ADD COLUMN expires_at TEXT COLLATE "C";

-- Entries before `first_seq` were deleted by retention; the entries that stood behind them begin their branches.
ALTER TABLE threads ADD COLUMN first_seq BIGINT NOT NULL DEFAULT 1;
