-- From version 47 to version 48.

-- A status that was set holds until something happens.
ALTER TABLE threads ADD COLUMN status_after TEXT COLLATE "C";

-- The documents' names can be written: what refused that goes.
DROP TRIGGER IF EXISTS refused ON conversations;
DROP TRIGGER IF EXISTS refused ON conversation_steps;
DROP TRIGGER IF EXISTS refused ON sessions;
DROP TRIGGER IF EXISTS refused ON messages;
DROP TRIGGER IF EXISTS refused ON conversation_state;
DROP TRIGGER IF EXISTS refused ON thread_activity;
DROP FUNCTION IF EXISTS refuse_writing();

-- Vectors that an import brought.
UPDATE memory_vectors SET model = 'imported' WHERE seq IS NULL AND model IS NULL;

-- A worker counts its renewals; no clock tells whether it lives.
DROP VIEW IF EXISTS living_workers;
DROP TABLE workers;
CREATE TABLE workers (
    id         TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    started_at TEXT COLLATE "C" NOT NULL,
    renewals   BIGINT NOT NULL
);
