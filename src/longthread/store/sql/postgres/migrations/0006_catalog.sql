-- What the source documents keep beside conversations: agents, skills and tools, memories, and what is derived from a
-- thread. The types are the documents'.

DO $$
DECLARE
    version TEXT := CAST(current_setting('server_version_num') AS INT) / 10000;
    place TEXT;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') THEN
        RAISE EXCEPTION 'the server lacks pgvector. Install it there (the package postgresql-%-pgvector on Debian and Ubuntu, '
            'pgvector_% on Red Hat, both from postgresql.org, or https://github.com/pgvector/pgvector) and try again',
            version, version;
    END IF;
    BEGIN
        CREATE EXTENSION IF NOT EXISTS vector;
    EXCEPTION WHEN insufficient_privilege THEN
        RAISE EXCEPTION 'the user % may not add pgvector to the database. Let its owner run: CREATE EXTENSION vector',
            current_user;
    END;
    IF to_regtype('vector') IS NULL THEN
        SELECT n.nspname INTO place FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
        WHERE e.extname = 'vector';
        RAISE EXCEPTION 'pgvector is in the schema %, which is not on the search_path. Add it there', place;
    END IF;
END
$$;

CREATE FUNCTION update_updated_at() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at = now();
    RETURN NEW;
END
$$;

CREATE TABLE agents (
    id            UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    name          VARCHAR(100) COLLATE "C" NOT NULL,
    description   TEXT COLLATE "C",
    system_prompt TEXT COLLATE "C" NOT NULL,
    config        JSONB DEFAULT '{"model":"gpt-4o","temperature":0.7,"max_tokens":4096,"timeout_seconds":120}',
    skills        TEXT[] COLLATE "C" DEFAULT '{}',
    sub_agents    TEXT[] COLLATE "C" DEFAULT '{}',
    is_active     BOOLEAN DEFAULT TRUE,
    created_at    TIMESTAMPTZ DEFAULT now(),
    updated_at    TIMESTAMPTZ DEFAULT now()
);

CREATE INDEX idx_agents_name ON agents (name);
CREATE INDEX idx_agents_active ON agents (is_active) WHERE is_active = TRUE;

CREATE TRIGGER agents_updated_at BEFORE UPDATE ON agents FOR EACH ROW EXECUTE FUNCTION update_updated_at();

CREATE TABLE skills (
    id               UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    name             VARCHAR(100) COLLATE "C" NOT NULL UNIQUE,
    description      TEXT COLLATE "C",
    trigger_keywords TEXT[] COLLATE "C" DEFAULT '{}',
    tools            JSONB NOT NULL DEFAULT '[]',
    config           JSONB DEFAULT '{}',
    is_builtin       BOOLEAN DEFAULT FALSE,
    created_at       TIMESTAMPTZ DEFAULT now(),
    updated_at       TIMESTAMPTZ DEFAULT now()
);

CREATE INDEX idx_skills_name ON skills (name);
CREATE INDEX idx_skills_builtin ON skills (is_builtin);

CREATE TRIGGER skills_updated_at BEFORE UPDATE ON skills FOR EACH ROW EXECUTE FUNCTION update_updated_at();

CREATE TABLE tools (
    id             UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    name           VARCHAR(100) COLLATE "C" NOT NULL UNIQUE,
    type           VARCHAR(50) COLLATE "C" NOT NULL CHECK (type IN ('api', 'code', 'query', 'mcp')),
    description    TEXT COLLATE "C",
    schema         JSONB NOT NULL,
    implementation JSONB NOT NULL,
    is_active      BOOLEAN DEFAULT TRUE,
    created_at     TIMESTAMPTZ DEFAULT now(),
    updated_at     TIMESTAMPTZ DEFAULT now()
);

CREATE INDEX idx_tools_name ON tools (name);
CREATE INDEX idx_tools_type ON tools (type);

CREATE TRIGGER tools_updated_at BEFORE UPDATE ON tools FOR EACH ROW EXECUTE FUNCTION update_updated_at();

-- A memory is an agent's and outlives the thread that it comes from.
CREATE TABLE memories (
    id          UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    agent_id    UUID NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    session_id  TEXT COLLATE "C" REFERENCES threads (id) ON DELETE SET NULL,
    content     TEXT COLLATE "C" NOT NULL,
    embedding   VECTOR(1536),
    memory_type VARCHAR(50) COLLATE "C" DEFAULT 'episodic'
        CHECK (memory_type IN ('episodic', 'semantic', 'procedural')),
    importance  FLOAT DEFAULT 0.5,
    metadata    JSONB DEFAULT '{}',
    expires_at  TIMESTAMPTZ,
    created_at  TIMESTAMPTZ DEFAULT now()
);

-- Not IVFFlat: it takes its lists from the rows that are there when it is made, and here there are none.
CREATE INDEX idx_memories_embedding ON memories USING hnsw (embedding vector_cosine_ops);
CREATE INDEX idx_memories_agent ON memories (agent_id);
CREATE INDEX idx_memories_type ON memories (memory_type);
CREATE INDEX idx_memories_importance ON memories (importance DESC);
-- For the deletion of a thread.
CREATE INDEX memories_of_thread ON memories (session_id) WHERE session_id IS NOT NULL;

-- What is derived from a thread goes with it.
CREATE TABLE conversation_summaries (
    thread_id     TEXT COLLATE "C" PRIMARY KEY REFERENCES threads (id) ON DELETE CASCADE,
    summary       TEXT COLLATE "C" NOT NULL,
    message_count INT DEFAULT 0,
    config_hash   TEXT COLLATE "C",
    updated_at    TIMESTAMPTZ DEFAULT now()
);

CREATE TRIGGER conversation_summaries_updated_at BEFORE UPDATE ON conversation_summaries
    FOR EACH ROW EXECUTE FUNCTION update_updated_at();

CREATE TABLE memory_vectors (
    id         TEXT COLLATE "C" PRIMARY KEY,
    thread_id  TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    chunk      TEXT COLLATE "C" NOT NULL,
    topics     TEXT[] COLLATE "C" DEFAULT '{}',
    embedding  VECTOR(1536),
    created_at TIMESTAMPTZ DEFAULT now()
);

CREATE INDEX idx_memory_vectors_thread ON memory_vectors (thread_id);
CREATE INDEX idx_memory_vectors_topics ON memory_vectors USING gin (topics);

CREATE TABLE memory_topics (
    thread_id     TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    topic         TEXT COLLATE "C" NOT NULL,
    mention_count INT DEFAULT 1,
    last_seen_at  TIMESTAMPTZ DEFAULT now(),
    PRIMARY KEY (thread_id, topic)
);

-- The client that a thread's conversation came from, when it came through the gateway.
CREATE TABLE thread_clients (
    thread_id      TEXT COLLATE "C" PRIMARY KEY REFERENCES threads (id) ON DELETE CASCADE,
    client_type    TEXT COLLATE "C" NOT NULL DEFAULT 'unknown'
        CHECK (client_type IN ('cursor', 'augment', 'claude_code', 'unknown')),
    last_signature TEXT COLLATE "C",
    access_count   BIGINT NOT NULL DEFAULT 0
);

-- Document 003 numbers its conversations. A number is this database's own: one that was given is not kept.
ALTER TABLE threads ADD COLUMN number BIGINT;
CREATE SEQUENCE thread_numbers OWNED BY threads.number;
UPDATE threads SET number = x.number
FROM (SELECT id, row_number() OVER (ORDER BY created_at, id) AS number FROM threads) x WHERE x.id = threads.id;
SELECT setval('thread_numbers', 1 + (SELECT count(*) FROM threads), FALSE);

CREATE FUNCTION number_thread() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE threads SET number = nextval('thread_numbers') WHERE id = NEW.id;
    RETURN NULL;
END
$$;

-- After, not before, which is also when a thread is there already and none is made.
CREATE TRIGGER thread_number AFTER INSERT ON threads FOR EACH ROW EXECUTE FUNCTION number_thread();

-- Document 002: a session goes with its agent. It lists sessions by agent and by status.
CREATE FUNCTION delete_threads_of_agent() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM threads WHERE agent_id = CAST(OLD.id AS TEXT);
    RETURN NULL;
END
$$;

CREATE TRIGGER agents_cascade AFTER DELETE ON agents FOR EACH ROW EXECUTE FUNCTION delete_threads_of_agent();

CREATE INDEX idx_sessions_agent ON threads (agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX idx_sessions_status ON threads (status) WHERE status <> 'active';
CREATE INDEX idx_conversation_state_expires ON threads (expires_at) WHERE expires_at IS NOT NULL;
