-- A memory is one user's with one agent, and goes with the thread that it comes from.
--
-- `said` tells two that say the same. `terms` and `words` are what a search compares, `form` says of which content and in
-- which form; a search makes up for what is missing. `numbers` is the vector of the model `model`, of any number of
-- dimensions; one of 1536 is in `embedding` too.
CREATE TABLE memories_new (
    id          TEXT PRIMARY KEY NOT NULL DEFAULT (
        lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
            || substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    agent_id    TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    session_id  TEXT REFERENCES threads (id) ON DELETE CASCADE,
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
    numbers     BLOB
);

INSERT INTO memories_new (id, agent_id, session_id, content, embedding, memory_type, importance, metadata, expires_at,
                          created_at, user_id)
SELECT id, agent_id, session_id, content, embedding, memory_type, importance, metadata, expires_at, created_at,
       coalesce((SELECT t.user_id FROM threads t WHERE t.id = session_id), 'default')
FROM memories;

DROP TABLE memories;
ALTER TABLE memories_new RENAME TO memories;

CREATE INDEX idx_memories_agent ON memories (agent_id);
CREATE INDEX idx_memories_type ON memories (memory_type);
CREATE INDEX idx_memories_importance ON memories (importance DESC);
CREATE INDEX memories_of_thread ON memories (session_id) WHERE session_id IS NOT NULL;
CREATE UNIQUE INDEX memories_of_user ON memories (user_id, agent_id, said);
CREATE INDEX memories_expire ON memories (expires_at) WHERE expires_at IS NOT NULL;

-- Who does not say whose it is means the user of the thread that it comes from.
CREATE TRIGGER memory_user AFTER INSERT ON memories WHEN NEW.user_id IS NULL
BEGIN
    UPDATE memories SET user_id = coalesce((SELECT t.user_id FROM threads t WHERE t.id = NEW.session_id), 'default')
    WHERE id = NEW.id;
END;

-- The entries that a memory comes from, in each thread where it was said, with the words that it was said in.
CREATE TABLE memory_sources (
    memory_id  TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    session_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seqs       TEXT NOT NULL,
    content    TEXT NOT NULL,
    said_at    TEXT NOT NULL,
    PRIMARY KEY (memory_id, session_id)
) WITHOUT ROWID;

CREATE INDEX memory_sources_of_thread ON memory_sources (session_id);

-- The memories that a run's model was given, in the line that it saw, or has looked up.
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

CREATE INDEX memory_uses_of_memory ON memory_uses (memory_id);
