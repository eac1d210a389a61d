-- The tables, indexes and triggers that are SQLite's own, as a new store gets them after `common/schema/tables.sql`.

CREATE INDEX threads_by_number ON threads (number);

-- Entries are found by a part of their ids and of their thread's: whole UUIDs were a tenth of the database. Of a UUID it is
-- one that differs, whatever its version; any other id is there whole.
-- That a thread has each id once is checked under the thread's lock, before an entry is written.
CREATE INDEX entries_by_id ON entries (
    CASE WHEN length(thread_id) = 36 AND substr(thread_id, -8) GLOB '[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'
         THEN substr(thread_id, -6) ELSE thread_id END
    || CASE WHEN length(id) = 36 AND substr(id, -8) GLOB '[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'
            THEN substr(id, 11, 3) || substr(id, -8) ELSE id END
);

-- Recall shows one version of a message; the others are found by the id that its application gave it.
CREATE INDEX entries_by_message ON entries (
    thread_id, CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.message_id') END
) WHERE CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.message_id') END IS NOT NULL;

CREATE UNIQUE INDEX checkpoints_by_id ON checkpoints (thread_id, ns, id);

-- The tables of the source documents: agents, skills, tools, memories. JSON is text, a list of texts is a JSON array, and
-- the length of a VARCHAR is checked. A trigger sets `updated_at`; 'now' is one moment within a statement, so that it ends
-- when it fires for its own change.

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

-- A database that may be asked. A password in its address is the name of a secret, `${NAME}`. `terms` and `examples` are
-- what people taught: business terms `[{"name","meaning","sql","synonyms"}]`, examples `[{"question","sql"}]`.
CREATE TABLE sources (
    id          TEXT PRIMARY KEY NOT NULL DEFAULT (
        lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
            || substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    name        TEXT NOT NULL UNIQUE CHECK (length(name) <= 100),
    description TEXT,
    address     TEXT NOT NULL,
    is_active   INTEGER DEFAULT TRUE CHECK (is_active IN (FALSE, TRUE)),
    created_at  TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
    updated_at  TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
    terms       TEXT DEFAULT '[]' CHECK (json_valid(terms)),
    examples    TEXT DEFAULT '[]' CHECK (json_valid(examples))
);

-- A memory is one user's with one agent, and is deleted with the thread that it comes from. `said` tells two that say the
-- same. `terms` and `words` are what a search compares; `form` says of which content and in which form they were made.
-- `numbers` is the vector of the model `model`, of any number of dimensions; one of 1536 is in `embedding` too.
CREATE TABLE memories (
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

CREATE INDEX idx_memories_agent ON memories (agent_id);
CREATE INDEX idx_memories_type ON memories (memory_type);
CREATE INDEX idx_memories_importance ON memories (importance DESC);
CREATE INDEX memories_of_thread ON memories (session_id) WHERE session_id IS NOT NULL;
CREATE UNIQUE INDEX memories_of_user ON memories (user_id, agent_id, said);
CREATE INDEX memories_expire ON memories (expires_at) WHERE expires_at IS NOT NULL;

-- The entries that a memory comes from, for each thread that said it, with the words of that thread. `origin` is what a
-- model had read when it wrote the memory, as JSON: `{"source", "results"}`; NULL: nothing but the conversation.
CREATE TABLE memory_sources (
    memory_id  TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    session_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seqs       TEXT NOT NULL,
    content    TEXT NOT NULL,
    said_at    TEXT NOT NULL,
    origin     TEXT,
    PRIMARY KEY (memory_id, session_id)
) WITHOUT ROWID;

CREATE INDEX memory_sources_of_thread ON memory_sources (session_id);

-- The memories that a run's model was given, as the line that it saw, or has looked up.
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

-- A thread's summary tells of the entries of a branch from `first_seq` to `last_seq`; the window begins after the last.
-- `digest` is what is reported of them without a model, as JSON; `model` wrote the summary, or NULL.
CREATE TABLE conversation_summaries (
    thread_id     TEXT PRIMARY KEY NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    summary       TEXT NOT NULL,
    message_count INTEGER DEFAULT 0,
    config_hash   TEXT,
    updated_at    TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
    first_seq     INTEGER,
    last_seq      INTEGER,
    model         TEXT,
    digest        TEXT
);

-- The vectors of entries: `seq` is the entry, `model` made the vector.
CREATE TABLE memory_vectors (
    id         TEXT PRIMARY KEY NOT NULL,
    thread_id  TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    chunk      TEXT NOT NULL,
    topics     TEXT DEFAULT '[]' CHECK (json_valid(topics) AND json_type(topics) = 'array'),
    embedding  BLOB,
    created_at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
    seq        INTEGER,
    model      TEXT
);

CREATE INDEX idx_memory_vectors_thread ON memory_vectors (thread_id);
CREATE INDEX memory_vectors_of_entries ON memory_vectors (thread_id, model, seq) WHERE seq IS NOT NULL;

CREATE TABLE memory_topics (
    thread_id     TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    topic         TEXT NOT NULL,
    mention_count INTEGER DEFAULT 1,
    last_seen_at  TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
    PRIMARY KEY (thread_id, topic)
) WITHOUT ROWID;

-- A vector of a text of an item's value: its numbers with 32 bits each, the lowest byte first.
CREATE TABLE item_vectors (
    user_id   TEXT NOT NULL,
    namespace TEXT NOT NULL,
    key       TEXT NOT NULL,
    field     TEXT NOT NULL,
    embedding BLOB NOT NULL,
    PRIMARY KEY (user_id, namespace, key, field),
    FOREIGN KEY (user_id, namespace, key) REFERENCES items (user_id, namespace, key) ON DELETE CASCADE
);

CREATE TRIGGER thread_number AFTER INSERT ON threads
BEGIN
    UPDATE threads SET number = (SELECT coalesce(max(number), 0) + 1 FROM threads WHERE id <> NEW.id),
                       incarnation = lower(hex(randomblob(8)))
    WHERE id = NEW.id;
END;

-- The deletion of a thread deletes the threads below it. All levels at once: a trigger does not fire itself.
CREATE TRIGGER threads_below AFTER DELETE ON threads
BEGIN
    DELETE FROM threads WHERE id IN (
        WITH RECURSIVE below (id) AS (
            SELECT id FROM threads WHERE parent_thread_id = OLD.id AND user_id = OLD.user_id
            UNION
            SELECT t.id FROM below b JOIN threads t ON t.parent_thread_id = b.id AND t.user_id = OLD.user_id
        )
        SELECT id FROM below
    );
END;

-- Document 002: a session is deleted with its agent.
CREATE TRIGGER agents_cascade AFTER DELETE ON agents
BEGIN
    DELETE FROM threads WHERE agent_id = OLD.id;
END;

CREATE TRIGGER agents_updated_at AFTER UPDATE ON agents
WHEN NEW.updated_at IS NOT strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
BEGIN
    UPDATE agents SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now') WHERE id = NEW.id;
END;

CREATE TRIGGER skills_updated_at AFTER UPDATE ON skills
WHEN NEW.updated_at IS NOT strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
BEGIN
    UPDATE skills SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now') WHERE id = NEW.id;
END;

CREATE TRIGGER tools_updated_at AFTER UPDATE ON tools
WHEN NEW.updated_at IS NOT strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
BEGIN
    UPDATE tools SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now') WHERE id = NEW.id;
END;

CREATE TRIGGER sources_updated_at AFTER UPDATE ON sources
WHEN NEW.updated_at IS NOT strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
BEGIN
    UPDATE sources SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now') WHERE id = NEW.id;
END;

CREATE TRIGGER conversation_summaries_updated_at AFTER UPDATE ON conversation_summaries
WHEN NEW.updated_at IS NOT strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
BEGIN
    UPDATE conversation_summaries SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
    WHERE thread_id = NEW.thread_id;
END;

-- A memory without a user is that of the user of the thread that it comes from.
CREATE TRIGGER memory_user AFTER INSERT ON memories WHEN NEW.user_id IS NULL
BEGIN
    UPDATE memories SET user_id = coalesce((SELECT t.user_id FROM threads t WHERE t.id = NEW.session_id), 'default')
    WHERE id = NEW.id;
END;

-- A volume is deleted with its postings, and its threads are in none then.
CREATE TRIGGER volume_gone BEFORE DELETE ON recall_volumes
BEGIN
    INSERT OR IGNORE INTO recall_loose (thread_id, user_id)
    SELECT thread_id, user_id FROM recall_bound WHERE user_id = OLD.user_id AND volume = OLD.id;
    DELETE FROM recall_bound WHERE user_id = OLD.user_id AND volume = OLD.id;
    DELETE FROM recall_volume_postings WHERE user_id = OLD.user_id AND volume = OLD.id;
END;

CREATE TRIGGER thread_loose_at_first AFTER INSERT ON threads WHEN NEW.entry_count > 0
BEGIN
    INSERT OR IGNORE INTO recall_loose (thread_id, user_id) VALUES (NEW.id, NEW.user_id);
END;

CREATE TRIGGER thread_loose AFTER UPDATE OF entry_count ON threads WHEN NEW.entry_count <> OLD.entry_count
BEGIN
    INSERT OR IGNORE INTO recall_loose (thread_id, user_id) VALUES (NEW.id, NEW.user_id);
END;

-- What was deleted of a thread must be in no volume, and a volume knows the user and the agent of its threads.
CREATE TRIGGER thread_cut AFTER UPDATE OF first_seq, user_id, agent_id ON threads
WHEN NEW.first_seq <> OLD.first_seq OR NEW.user_id <> OLD.user_id OR NEW.agent_id IS NOT OLD.agent_id
BEGIN
    DELETE FROM recall_volumes
    WHERE (user_id, id) = (SELECT user_id, volume FROM recall_bound WHERE thread_id = OLD.id);
    UPDATE recall_loose SET user_id = NEW.user_id WHERE thread_id = NEW.id;
END;

CREATE TRIGGER thread_unbound BEFORE DELETE ON threads
BEGIN
    DELETE FROM recall_volumes
    WHERE (user_id, id) = (SELECT user_id, volume FROM recall_bound WHERE thread_id = OLD.id);
END;
