-- From version 38 to version 39: workers execute runs.

ALTER TABLE runs DROP COLUMN lease_until;
ALTER TABLE runs ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN claimable INTEGER NOT NULL DEFAULT FALSE CHECK (claimable IN (FALSE, TRUE));
ALTER TABLE runs ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN steps_before INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN stop_by TEXT;

CREATE INDEX runs_to_execute ON runs (owner) WHERE status = 'running' AND waiting_since IS NULL;

CREATE TABLE workers (
    id         TEXT PRIMARY KEY NOT NULL,
    started_at TEXT NOT NULL,
    renewed_at INTEGER NOT NULL
) WITHOUT ROWID;
