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
-- A memory outlives its thread.
ALTER TABLE memories ADD COLUMN origin TEXT COLLATE "C", ADD COLUMN source_deleted_at TIMESTAMPTZ;
ALTER TABLE memories ADD COLUMN said_at TIMESTAMPTZ;
UPDATE memories SET said_at = (SELECT max(CAST(s.said_at AS TIMESTAMPTZ)) FROM memory_sources s WHERE s.memory_id = memories.id)
WHERE session_id IS NOT NULL;
ALTER TABLE memories DROP CONSTRAINT memories_session_id_fkey;
ALTER TABLE memories ADD CONSTRAINT memories_session_id_fkey FOREIGN KEY (session_id) REFERENCES threads (id) ON DELETE SET NULL;
ALTER TABLE pending_deletions ADD COLUMN with_memories BOOLEAN NOT NULL DEFAULT FALSE;

-- A memory outlives the threads that said it: it is one's that is left, or says that there is none any more.
CREATE FUNCTION keep_memories() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE memories
    SET origin = (SELECT s.origin FROM memory_sources s WHERE s.memory_id = memories.id AND s.session_id = OLD.id)
    WHERE session_id IS NOT NULL
      AND id IN (SELECT s.memory_id FROM memory_sources s WHERE s.session_id = OLD.id AND s.origin IS NOT NULL);
    UPDATE memories
    SET source_deleted_at = now()
    WHERE session_id = OLD.id
      AND NOT EXISTS (SELECT 1 FROM memory_sources s WHERE s.memory_id = memories.id AND s.session_id <> OLD.id);
    UPDATE memories
    SET session_id = (
        SELECT s.session_id FROM memory_sources s
        WHERE s.memory_id = memories.id AND s.session_id <> OLD.id
        ORDER BY s.said_at DESC, s.session_id DESC
        LIMIT 1
    )
    WHERE session_id = OLD.id;
    RETURN OLD;
END
$$;

CREATE TRIGGER memories_outlive BEFORE DELETE ON threads FOR EACH ROW EXECUTE FUNCTION keep_memories();

-- A conversation of the gateway's belongs to the credential that its client showed.
ALTER TABLE thread_clients ADD COLUMN owner TEXT COLLATE "C";
CREATE INDEX thread_clients_unowned ON thread_clients (thread_id) WHERE owner IS NULL;
CREATE TABLE gateway_salt (
    id   TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    salt TEXT COLLATE "C" NOT NULL
);

-- The metrics of a source.
ALTER TABLE sources ADD COLUMN semantics JSONB DEFAULT '{}';

-- How models speak, as probes found.
CREATE TABLE model_protocols (
    model     TEXT COLLATE "C" NOT NULL,
    endpoint  TEXT COLLATE "C" NOT NULL,
    protocol  TEXT COLLATE "C" NOT NULL,
    probed_at TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (model, endpoint)
);
