-- What the source documents keep beside conversations: agents, skills and tools, memories, and what is derived from a
-- thread. JSON is text, a list of texts is a JSON array, and a VARCHAR's length is checked.

CREATE TABLE agents (
    id            TEXT PRIMARY KEY NOT NULL DEFAULT (
        lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
            || substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    name          TEXT NOT NULL CHECK (length(name) <= 100),
    description   TEXT,
    system_prompt TEXT NOT NULL,
    config        TEXT DEFAULT '{"model":"gpt-4o","temperature":0.7,"max_tokens":4096,"timeout_seconds":120}'
        CHECK (json_valid(config)),
    skills        TEXT DEFAULT '[]' CHECK (json_valid(skills) AND json_type(skills) = 'array'),
    sub_agents    TEXT DEFAULT '[]' CHECK (json_valid(sub_agents) AND json_type(sub_agents) = 'array'),
    is_active     INTEGER DEFAULT TRUE CHECK (is_active IN (FALSE, TRUE)),
    created_at    TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
    updated_at    TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))
);

CREATE INDEX idx_agents_name ON agents (name);
CREATE INDEX idx_agents_active ON agents (is_active) WHERE is_active = TRUE;

-- 'now' is one moment within a statement, so that a trigger that fires again for its own change finds nothing to do.
CREATE TRIGGER agents_updated_at AFTER UPDATE ON agents
WHEN NEW.updated_at IS NOT strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
BEGIN
    UPDATE agents SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now') WHERE id = NEW.id;
END;

CREATE TABLE skills (
    id               TEXT PRIMARY KEY NOT NULL DEFAULT (
        lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
            || substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    name             TEXT NOT NULL UNIQUE CHECK (length(name) <= 100),
    description      TEXT,
    trigger_keywords TEXT DEFAULT '[]' CHECK (json_valid(trigger_keywords) AND json_type(trigger_keywords) = 'array'),
    tools            TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tools)),
    config           TEXT DEFAULT '{}' CHECK (json_valid(config)),
    is_builtin       INTEGER DEFAULT FALSE CHECK (is_builtin IN (FALSE, TRUE)),
    created_at       TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
    updated_at       TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))
);

CREATE INDEX idx_skills_name ON skills (name);
CREATE INDEX idx_skills_builtin ON skills (is_builtin);

CREATE TRIGGER skills_updated_at AFTER UPDATE ON skills
WHEN NEW.updated_at IS NOT strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
BEGIN
    UPDATE skills SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now') WHERE id = NEW.id;
END;

CREATE TABLE tools (
    id             TEXT PRIMARY KEY NOT NULL DEFAULT (
        lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
            || substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    name           TEXT NOT NULL UNIQUE CHECK (length(name) <= 100),
    type           TEXT NOT NULL CHECK (type IN ('api', 'code', 'query', 'mcp')),
    description    TEXT,
    schema         TEXT NOT NULL CHECK (json_valid(schema)),
    implementation TEXT NOT NULL CHECK (json_valid(implementation)),
    is_active      INTEGER DEFAULT TRUE CHECK (is_active IN (FALSE, TRUE)),
    created_at     TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
    updated_at     TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))
);

CREATE INDEX idx_tools_name ON tools (name);
CREATE INDEX idx_tools_type ON tools (type);

CREATE TRIGGER tools_updated_at AFTER UPDATE ON tools
WHEN NEW.updated_at IS NOT strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
BEGIN
    UPDATE tools SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now') WHERE id = NEW.id;
END;

-- A memory is an agent's and outlives the thread that it comes from.
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
    created_at  TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))
);

CREATE INDEX idx_memories_agent ON memories (agent_id);
CREATE INDEX idx_memories_type ON memories (memory_type);
CREATE INDEX idx_memories_importance ON memories (importance DESC);
-- For the deletion of a thread.
CREATE INDEX memories_of_thread ON memories (session_id) WHERE session_id IS NOT NULL;

-- What is derived from a thread goes with it.
CREATE TABLE conversation_summaries (
    thread_id     TEXT PRIMARY KEY NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    summary       TEXT NOT NULL,
    message_count INTEGER DEFAULT 0,
    config_hash   TEXT,
    updated_at    TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))
);

CREATE TRIGGER conversation_summaries_updated_at AFTER UPDATE ON conversation_summaries
WHEN NEW.updated_at IS NOT strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
BEGIN
    UPDATE conversation_summaries SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
    WHERE thread_id = NEW.thread_id;
END;

CREATE TABLE memory_vectors (
    id         TEXT PRIMARY KEY NOT NULL,
    thread_id  TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    chunk      TEXT NOT NULL,
    topics     TEXT DEFAULT '[]' CHECK (json_valid(topics) AND json_type(topics) = 'array'),
    embedding  BLOB,
    created_at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))
);

CREATE INDEX idx_memory_vectors_thread ON memory_vectors (thread_id);

CREATE TABLE memory_topics (
    thread_id     TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    topic         TEXT NOT NULL,
    mention_count INTEGER DEFAULT 1,
    last_seen_at  TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
    PRIMARY KEY (thread_id, topic)
) WITHOUT ROWID;

-- The client that a thread's conversation came from, when it came through the gateway.
CREATE TABLE thread_clients (
    thread_id      TEXT PRIMARY KEY NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    client_type    TEXT NOT NULL DEFAULT 'unknown'
        CHECK (client_type IN ('cursor', 'augment', 'claude_code', 'unknown')),
    last_signature TEXT,
    access_count   INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- Document 003 numbers its conversations. A number is this database's own: one that was given is not kept.
ALTER TABLE threads ADD COLUMN number INTEGER;
CREATE INDEX threads_by_number ON threads (number);
UPDATE threads SET number = x.number
FROM (SELECT id, row_number() OVER (ORDER BY created_at, id) AS number FROM threads) x WHERE x.id = threads.id;

CREATE TRIGGER thread_number AFTER INSERT ON threads
BEGIN
    UPDATE threads SET number = (SELECT coalesce(max(number), 0) + 1 FROM threads WHERE id <> NEW.id)
    WHERE id = NEW.id;
END;

-- Document 002: a session goes with its agent. It lists sessions by agent, by status and by time.
CREATE TRIGGER agents_cascade AFTER DELETE ON agents
BEGIN
    DELETE FROM threads WHERE agent_id = OLD.id;
END;

CREATE INDEX idx_sessions_agent ON threads (agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX idx_sessions_status ON threads (status) WHERE status <> 'active';
CREATE INDEX idx_conversation_state_expires ON threads (expires_at) WHERE expires_at IS NOT NULL;
