-- From version 47 to version 48.

-- A status that was set holds until something happens.
ALTER TABLE threads ADD COLUMN status_after TEXT;

-- Vectors that an import brought.
UPDATE memory_vectors SET model = 'imported' WHERE seq IS NULL AND model IS NULL;

-- A worker counts its renewals; no clock tells whether it lives.
DROP VIEW IF EXISTS living_workers;
ALTER TABLE workers RENAME COLUMN renewed_at TO renewals;
-- A memory outlives its thread. Its reference changes, so that its table is made anew, and those that refer to it.
CREATE TABLE old_memory_sources AS SELECT * FROM memory_sources;
CREATE TABLE old_memory_uses AS SELECT * FROM memory_uses;
DROP TABLE memory_sources;
DROP TABLE memory_uses;
ALTER TABLE memories RENAME TO old_memories;

CREATE TABLE memories (
    id          TEXT PRIMARY KEY NOT NULL DEFAULT (
        lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
            || substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    agent_id    TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    session_id  TEXT REFERENCES threads (id) ON DELETE SET NULL,
    content     TEXT NOT NULL,
    embedding   BLOB,
    memory_type TEXT DEFAULT 'episodic' CHECK (memory_type IN ('episodic', 'semantic', 'procedural')),
    importance  REAL DEFAULT 0.5,
    metadata    TEXT DEFAULT '{}' CHECK (json_valid(metadata)),
    expires_at  TEXT,
    created_at  TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
    user_id     TEXT,
    said        TEXT,
    form        TEXT,
    words       INTEGER,
    terms       BLOB,
    model       TEXT,
    numbers     BLOB,
    origin      TEXT,
    source_deleted_at TEXT,
    said_at     TEXT
);

INSERT INTO memories (id, agent_id, session_id, content, embedding, memory_type, importance, metadata, expires_at,
    created_at, user_id, said, form, words, terms, model, numbers)
SELECT id, agent_id, session_id, content, embedding, memory_type, importance, metadata, expires_at, created_at,
    user_id, said, form, words, terms, model, numbers FROM old_memories;
DROP TABLE old_memories;
CREATE INDEX idx_memories_agent ON memories (agent_id);
CREATE INDEX idx_memories_type ON memories (memory_type);
CREATE INDEX idx_memories_importance ON memories (importance DESC);
CREATE INDEX memories_of_thread ON memories (session_id) WHERE session_id IS NOT NULL;
CREATE UNIQUE INDEX memories_of_user ON memories (user_id, agent_id, said);
CREATE INDEX memories_expire ON memories (expires_at) WHERE expires_at IS NOT NULL;

-- A memory without a user is that of the user of the thread that it comes from.
CREATE TRIGGER memory_user AFTER INSERT ON memories WHEN NEW.user_id IS NULL
BEGIN
    UPDATE memories SET user_id = coalesce((SELECT t.user_id FROM threads t WHERE t.id = NEW.session_id), 'default')
    WHERE id = NEW.id;
END;

CREATE TABLE memory_sources (
    memory_id  TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    session_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seqs       TEXT NOT NULL,
    content    TEXT NOT NULL,
    said_at    TEXT NOT NULL,
    origin     TEXT,
    PRIMARY KEY (memory_id, session_id)
) WITHOUT ROWID;

INSERT INTO memory_sources SELECT * FROM old_memory_sources;
DROP TABLE old_memory_sources;
UPDATE memories SET said_at = (SELECT max(s.said_at) FROM memory_sources s WHERE s.memory_id = memories.id)
WHERE session_id IS NOT NULL;
CREATE INDEX memory_sources_of_thread ON memory_sources (session_id);

CREATE TABLE memory_uses (
    session_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    run_id     TEXT NOT NULL,
    memory_id  TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    how        TEXT NOT NULL CHECK (how IN ('given', 'found')),
    place      INTEGER NOT NULL,
    shown      TEXT NOT NULL,
    PRIMARY KEY (session_id, run_id, memory_id),
    FOREIGN KEY (session_id, run_id) REFERENCES runs (thread_id, id) ON DELETE CASCADE
) WITHOUT ROWID;

INSERT INTO memory_uses SELECT * FROM old_memory_uses;
DROP TABLE old_memory_uses;
CREATE INDEX memory_uses_of_memory ON memory_uses (memory_id);

ALTER TABLE pending_deletions ADD COLUMN with_memories INTEGER NOT NULL DEFAULT FALSE CHECK (with_memories IN (FALSE, TRUE));

-- A memory outlives the threads that said it: it is one's that is left, or says that there is none any more.
CREATE TRIGGER memories_outlive BEFORE DELETE ON threads
BEGIN
    UPDATE memories
    SET origin = (SELECT s.origin FROM memory_sources s WHERE s.memory_id = memories.id AND s.session_id = OLD.id)
    WHERE session_id IS NOT NULL
      AND id IN (SELECT s.memory_id FROM memory_sources s WHERE s.session_id = OLD.id AND s.origin IS NOT NULL);
    UPDATE memories
    SET source_deleted_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
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
END;
-- A conversation of the gateway's belongs to the credential that its client showed.
ALTER TABLE thread_clients ADD COLUMN owner TEXT;
CREATE INDEX thread_clients_unowned ON thread_clients (thread_id) WHERE owner IS NULL;
CREATE TABLE gateway_salt (
    id   TEXT PRIMARY KEY NOT NULL,
    salt TEXT NOT NULL
);

-- The metrics of a source.
ALTER TABLE sources ADD COLUMN semantics TEXT DEFAULT '{}' CHECK (json_valid(semantics));

-- How models speak, as probes found.
CREATE TABLE model_protocols (
    model     TEXT NOT NULL,
    endpoint  TEXT NOT NULL,
    protocol  TEXT NOT NULL,
    probed_at TEXT NOT NULL,
    PRIMARY KEY (model, endpoint)
);
