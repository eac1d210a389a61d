-- What people note beside a conversation: metadata of single messages, which are not changed themselves. How a session
-- stands follows from its last run.

-- `data` is a JSON object.
CREATE TABLE message_metadata (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seq       INTEGER NOT NULL,
    data      TEXT NOT NULL,
    PRIMARY KEY (thread_id, seq)
) WITHOUT ROWID;

-- The thread's own status is for one without runs, such as an imported one.
DROP VIEW sessions;
CREATE VIEW sessions AS
SELECT t.id, t.agent_id, t.user_id,
       CASE WHEN r.id IS NULL THEN t.status WHEN r.status = 'finished' THEN 'completed'
            WHEN r.waiting_since IS NOT NULL THEN 'paused' WHEN r.status = 'running' THEN 'active' ELSE r.status END AS status,
       t.title, t.metadata, t.created_at AS started_at,
       CASE WHEN r.id IS NULL THEN t.ended_at WHEN r.status IN ('finished', 'failed') THEN r.ended_at END AS ended_at,
       t.created_at
FROM threads t
LEFT JOIN runs r ON r.thread_id = t.id AND r.id = (SELECT max(x.id) FROM runs x WHERE x.thread_id = t.id);

DROP VIEW messages;
CREATE VIEW messages AS
SELECT e.id, e.thread_id AS session_id,
       (SELECT p.id FROM entries p WHERE p.thread_id = e.thread_id AND p.seq = e.parent_seq) AS parent_id,
       e.role, e.text AS content,
       CASE WHEN json_valid(e.tool_calls) THEN (
           SELECT json_group_array(json_object(
               'id', json_extract(c.value, '$.id'), 'type', 'function', 'function', json_object(
                   'name', json_extract(c.value, '$.name'), 'arguments', '' || json_extract(c.value, '$.args'))))
           FROM json_each(e.tool_calls) c
       ) END AS tool_calls,
       e.tool_call_id, e.tokens AS tokens_used, e.latency_ms,
       -- What people noted goes before what Longthread did. (json_patch would drop what is null.)
       CASE WHEN json_valid(m.data) AND (e.metadata IS NULL OR json_valid(e.metadata)) THEN (
           SELECT json_group_object(key, json(CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false'
                                              WHEN 'object' THEN value WHEN 'array' THEN value ELSE json_quote(value) END))
           FROM (SELECT n.key, n.type, n.value FROM json_each(coalesce(e.metadata, '{}')) n
                 WHERE n.key NOT IN (SELECT k.key FROM json_each(m.data) k)
                 UNION ALL SELECT d.key, d.type, d.value FROM json_each(m.data) d)
       ) ELSE coalesce(e.metadata, '{}') END AS metadata,
       e.created_at
FROM entries e LEFT JOIN message_metadata m ON m.thread_id = e.thread_id AND m.seq = e.seq;
