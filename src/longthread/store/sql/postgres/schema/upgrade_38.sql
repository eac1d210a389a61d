-- From version 38 to version 39: workers execute runs.

ALTER TABLE runs DROP COLUMN lease_until;
ALTER TABLE runs ADD COLUMN attempt BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN claimable BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE runs ADD COLUMN crashes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN steps_before BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN stop_by TEXT COLLATE "C";

-- The index tells of the owner, and so do the statistics.
ALTER TABLE runs ALTER COLUMN owner SET STATISTICS -1;
CREATE INDEX runs_to_execute ON runs (owner) WHERE status = 'running' AND waiting_since IS NULL;

CREATE TABLE workers (
    id         TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    started_at TEXT COLLATE "C" NOT NULL,
    renewed_at BIGINT NOT NULL
);
