-- What people note beside a conversation: metadata of single messages, which are not changed themselves. How a session
-- stands follows from its last run.

-- `data` is a JSON object.
CREATE TABLE message_metadata (
    thread_id TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seq       BIGINT NOT NULL,
    data      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (thread_id, seq)
);
ALTER TABLE message_metadata ALTER COLUMN data SET STATISTICS 0;

-- The thread's own status is for one without runs, such as an imported one.
CREATE OR REPLACE VIEW sessions AS
SELECT t.id, t.agent_id, t.user_id,
       CASE WHEN r.id IS NULL THEN t.status WHEN r.status = 'finished' THEN 'completed'
            WHEN r.waiting_since IS NOT NULL THEN 'paused' WHEN r.status = 'running' THEN 'active' ELSE r.status END AS status,
       t.title, CAST(json_of(t.metadata) AS JSONB) AS metadata, CAST(t.created_at AS TIMESTAMPTZ) AS started_at,
       CAST(CASE WHEN r.id IS NULL THEN t.ended_at WHEN r.status IN ('finished', 'failed') THEN r.ended_at END
            AS TIMESTAMPTZ) AS ended_at,
       CAST(t.created_at AS TIMESTAMPTZ) AS created_at
FROM threads t
LEFT JOIN runs r ON r.thread_id = t.id AND r.id = (SELECT max(x.id) FROM runs x WHERE x.thread_id = t.id);

CREATE OR REPLACE VIEW messages AS
SELECT e.id, e.thread_id AS session_id,
       (SELECT p.id FROM entries p WHERE p.thread_id = e.thread_id AND p.seq = e.parent_seq) AS parent_id,
       e.role, e.text AS content, CAST(function_calls(json_of(e.tool_calls)) AS JSONB) AS tool_calls, e.tool_call_id,
       CAST(e.tokens AS INTEGER) AS tokens_used, CAST(e.latency_ms AS INTEGER) AS latency_ms,
       -- What people noted goes before what Longthread did.
       coalesce(CAST(json_of(e.metadata) AS JSONB), '{}') || coalesce(CAST(json_of(m.data) AS JSONB), '{}') AS metadata,
       CAST(e.created_at AS TIMESTAMPTZ) AS created_at
FROM entries e LEFT JOIN message_metadata m ON m.thread_id = e.thread_id AND m.seq = e.seq;

-- The documents' ids are UUIDs, those of threads and messages may have any form: a program may bind either to either.
CREATE FUNCTION text_is_uuid(said TEXT, id UUID) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN said = CAST(id AS TEXT);
CREATE FUNCTION text_is_not_uuid(said TEXT, id UUID) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN said <> CAST(id AS TEXT);
CREATE FUNCTION uuid_is_text(id UUID, said TEXT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CAST(id AS TEXT) = said;
CREATE FUNCTION uuid_is_not_text(id UUID, said TEXT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CAST(id AS TEXT) <> said;
CREATE OPERATOR = (LEFTARG = TEXT, RIGHTARG = UUID, FUNCTION = text_is_uuid, COMMUTATOR = =, NEGATOR = <>);
CREATE OPERATOR = (LEFTARG = UUID, RIGHTARG = TEXT, FUNCTION = uuid_is_text, COMMUTATOR = =, NEGATOR = <>);
CREATE OPERATOR <> (LEFTARG = TEXT, RIGHTARG = UUID, FUNCTION = text_is_not_uuid, COMMUTATOR = <>, NEGATOR = =);
CREATE OPERATOR <> (LEFTARG = UUID, RIGHTARG = TEXT, FUNCTION = uuid_is_not_text, COMMUTATOR = <>, NEGATOR = =);

-- And the vector of a question as its text.
CREATE FUNCTION distance_to_text(embedding VECTOR, said TEXT) RETURNS DOUBLE PRECISION LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN embedding <=> CAST(said AS VECTOR);
CREATE OPERATOR <=> (LEFTARG = VECTOR, RIGHTARG = TEXT, FUNCTION = distance_to_text);
