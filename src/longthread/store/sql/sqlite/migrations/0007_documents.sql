-- The names that the source documents give to threads and entries. Nothing is stored here; all of it is computed.
--
-- `json_extract(x, p, p)` gives `[v,v]` with v as it was written: the text between is the value without a loss, which a
-- single path would give as a number, a text or a boolean of SQL's.

-- Document 000. `state_data` equals the fold of the active branch's entries (longthread.model.fold), and is computed
-- only where it is asked for.
CREATE VIEW conversations AS
SELECT t.id AS thread_id, t.user_id, t.title, t.created_at, t.updated_at, t.tool_categories, t.tags, (
    WITH RECURSIVE
    branch (seq, parent_seq) AS (
        SELECT e.seq, e.parent_seq FROM entries e
        WHERE e.thread_id = t.id AND e.seq = t.tip AND e.seq >= t.first_seq
        UNION ALL
        SELECT e.seq, e.parent_seq FROM branch b JOIN entries e ON e.thread_id = t.id AND e.seq = b.parent_seq
        WHERE b.parent_seq >= t.first_seq
    ),
    line AS (
        SELECT e.seq, e.role, e.text, e.tool_call_id,
               CASE WHEN json_valid(e.tool_calls) THEN e.tool_calls ELSE '[]' END AS tool_calls,
               CASE WHEN json_valid(e.metadata) THEN e.metadata ELSE '{}' END AS note,
               CASE WHEN json_valid(e.metadata) THEN json_extract(e.metadata, '$.kind') END AS kind,
               replace(e.created_at, '.000000+', '+') AS at
        FROM branch b JOIN entries e ON e.thread_id = t.id AND e.seq = b.seq
    ),
    asked AS (
        SELECT seq, text, note, source,
               lag(source, 1, '[null,null]') OVER (ORDER BY seq) AS source_before,
               lag(text, 1, '') OVER (ORDER BY seq) AS text_before,
               -- What asks_to_continue takes for a wish to go on: white space as Python knows it, then marks, go first.
               lower(trim(trim(text, char(
                   9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 133, 160, 5760, 8192, 8193, 8194, 8195, 8196, 8197, 8198,
                   8199, 8200, 8201, 8202, 8232, 8233, 8239, 8287, 12288)), '。.!！~ '))
               IN ('继续', '请继续', '继续吧', '接着', 'continue', 'go on', 'please continue', 'resume') AS goes_on
        FROM (SELECT *, json_extract(note, '$.source', '$.fingerprint') AS source FROM line WHERE role = 'user')
    ),
    mark AS (
        SELECT coalesce(max(seq), 0) AS last_asked,
               coalesce(max(CASE WHEN NOT goes_on OR text_before = '' THEN seq END), 0) AS question,
               coalesce(max(CASE WHEN source <> source_before THEN seq END), 0) AS source
        FROM asked
    ),
    -- Each result with the call of its id that came last before it, unless another result has taken that one.
    paired AS (
        SELECT seq, is_result, text, at,
               lag(is_result, 1, 1) OVER ids AS taken,
               lag(action) OVER ids AS action,
               lag(args) OVER ids AS args,
               lag(thought) OVER ids AS thought
        FROM (
            SELECT l.seq, c.key AS idx, 0 AS is_result, coalesce(json_extract(c.value, '$.id'), '') AS call_id,
                   json_extract(c.value, '$.name', '$.name') AS action, json_extract(c.value, '$.args') AS args,
                   CASE WHEN l.kind = 'malformed' THEN '' ELSE l.text END AS thought, NULL AS text, NULL AS at
            FROM line l, json_each(l.tool_calls) c WHERE l.role = 'assistant'
            UNION ALL
            SELECT seq, 0, 1, coalesce(tool_call_id, ''), NULL, NULL, NULL, text, at FROM line WHERE role = 'tool'
        )
        WINDOW ids AS (PARTITION BY call_id ORDER BY seq, idx)
    ),
    observed AS (
        SELECT seq, at, text, substr(action, 2, length(action) / 2 - 1) AS action, args, thought,
               CASE WHEN NOT json_valid(body) THEN json_object('ok', json('true'), 'data', text)
                    WHEN json_type(body) = 'object' AND json_type(body, '$.ok') IS NOT NULL THEN json(body)
                    ELSE json_object('ok', json('true'), 'data', json(body)) END AS observation
        FROM (SELECT *, CASE WHEN substr(text, 1, 13) = 'Observation: ' THEN substr(text, 14) ELSE text END AS body
              FROM paired WHERE is_result AND NOT taken)
    ),
    done AS (
        SELECT *,
               CASE json_type(observation, '$.ok')
                   WHEN 'true' THEN 1
                   WHEN 'false' THEN 0
                   WHEN 'null' THEN 0
                   WHEN 'array' THEN json_extract(observation, '$.ok') <> '[]'
                   WHEN 'object' THEN json_extract(observation, '$.ok') <> '{}'
                   WHEN 'text' THEN json_extract(observation, '$.ok') <> ''
                   ELSE json_extract(observation, '$.ok') <> 0 END AS ok,
               json_extract(observation, '$.error', '$.error') AS error
        FROM observed
    ),
    learned AS (
        SELECT seq, action, json_extract(observation, '$.data') AS data
        FROM done
        WHERE ok AND json_type(observation, '$.data') = 'object' AND seq > (SELECT source FROM mark)
    ),
    described AS (
        SELECT seq, action, data, json_extract(data, '$.table_name') AS name
        FROM learned
        WHERE action IN ('"describe_table"', '"sample_rows"') AND json_type(data, '$.table_name') = 'text'
    ),
    known AS (
        SELECT action, name, data,
               row_number() OVER (PARTITION BY action, name ORDER BY seq DESC) AS age,
               min(seq) OVER (PARTITION BY action, name) AS first
        FROM described
    ),
    named AS (
        SELECT seq, 0 AS idx, json_quote(name) AS name FROM described
        UNION ALL
        SELECT l.seq, n.key,
               CASE n.type WHEN 'object' THEN n.value WHEN 'array' THEN n.value WHEN 'true' THEN 'true'
                           WHEN 'false' THEN 'false' ELSE json_quote(n.value) END
        FROM learned l, json_each(l.data, '$.tables') n
        WHERE l.action = '"list_tables"' AND json_type(l.data, '$.tables') = 'array'
    ),
    answered AS (
        SELECT seq, at, text FROM line WHERE role = 'assistant' AND kind = 'answer'
    )
    SELECT json_object(
        'question', coalesce((SELECT text FROM asked WHERE seq = (SELECT question FROM mark)), ''),
        'messages', json((
            SELECT json_group_array(json(message)) FROM (
                SELECT json_object('role', role, 'content', text) AS message FROM line
                WHERE role = 'user' OR role = 'assistant' AND kind IN ('answer', 'summary') ORDER BY seq))),
        'steps', json((
            SELECT json_group_array(json(step)) FROM (
                SELECT json_object(
                    'step_index', row_number() OVER (ORDER BY seq) - 1, 'step_type', step_type, 'thought', thought,
                    'action', json(action), 'args', json(args), 'observation', json(observation), 'content', text,
                    'timestamp', at) AS step
                FROM (
                    SELECT seq, CASE action WHEN '"json_parse_error"' THEN 'error' ELSE 'action' END AS step_type,
                           thought, action, args, observation, text, at
                    FROM done
                    UNION ALL
                    SELECT seq, 'finish', '', '"finish"', '{}', 'null', text, at FROM answered)
                ORDER BY seq))),
        'known_tables', json((
            SELECT json_group_array(json(name)) FROM (
                SELECT name FROM (
                    SELECT name, seq, idx, row_number() OVER (PARTITION BY name ORDER BY seq, idx) AS nth FROM named)
                WHERE nth = 1 ORDER BY seq, idx))),
        'known_schemas', json((
            SELECT json_group_object(name, json(data)) FROM (
                SELECT name, data FROM known WHERE action = '"describe_table"' AND age = 1 ORDER BY first))),
        'candidate_tables', json((
            SELECT json_group_array(name) FROM (
                SELECT json_extract(args, '$.table') AS name FROM done
                WHERE action IN ('"describe_table"', '"sample_rows"') AND json_type(args, '$.table') = 'text'
                  AND seq > (SELECT question FROM mark)
                GROUP BY 1 ORDER BY min(seq)))),
        'known_samples', json((
            SELECT json_group_object(name, json(data)) FROM (
                SELECT name, data FROM known WHERE action = '"sample_rows"' AND age = 1 ORDER BY first))),
        'error_history', json((
            SELECT json_group_array(json(error)) FROM (
                SELECT json_object('action', json(action), 'error', json(substr(error, 2, length(error) / 2 - 1)),
                                   'timestamp', at) AS error
                FROM done WHERE NOT ok ORDER BY seq))),
        'sql_history', json((
            SELECT json_group_array(json(item)) FROM (
                SELECT json_object('sql', json(substr(sql, 2, length(sql) / 2 - 1)), 'result', json(observation),
                                   'timestamp', at) AS item
                FROM (SELECT *, json_extract(args, '$.sql', '$.sql') AS sql FROM done WHERE action = '"run_sql"')
                ORDER BY seq))),
        'last_error', json((
            SELECT json_object('action', json(action), 'error', json(substr(error, 2, length(error) / 2 - 1)),
                               'timestamp', at)
            FROM done WHERE NOT ok AND seq > (SELECT question FROM mark) ORDER BY seq DESC LIMIT 1)),
        'done', json(CASE WHEN (SELECT max(seq) FROM answered) > (SELECT last_asked FROM mark)
                          THEN 'true' ELSE 'false' END),
        'answer', json((
            SELECT json_object('ok', json('true'), 'data', text) FROM answered
            WHERE seq > (SELECT last_asked FROM mark) ORDER BY seq DESC LIMIT 1)),
        'max_steps', json((
            SELECT substr(given, 2, length(given) / 2 - 1)
            FROM (SELECT json_extract(note, '$.max_steps', '$.max_steps') AS given
                  FROM asked WHERE json_type(note, '$.max_steps') IS NOT NULL ORDER BY seq DESC LIMIT 1))),
        'compressed_summary', (SELECT summary FROM conversation_summaries s WHERE s.thread_id = t.id),
        'compressed_message_count',
            coalesce((SELECT message_count FROM conversation_summaries s WHERE s.thread_id = t.id), 0),
        'compressed_config_hash', (SELECT config_hash FROM conversation_summaries s WHERE s.thread_id = t.id)
    )
) AS state_data
FROM threads t;

CREATE VIEW conversation_steps AS
SELECT t.number * 4294967296 + s.key AS id, t.id AS thread_id, s.key AS step_index, s.value AS step_data,
       json_extract(s.value, '$.timestamp') AS created_at
FROM threads t JOIN conversations c ON c.thread_id = t.id JOIN json_each(c.state_data, '$.steps') s;

-- Document 002.
CREATE VIEW sessions AS
SELECT id, agent_id, user_id, status, title, metadata, created_at AS started_at, ended_at, created_at FROM threads;

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
       e.tool_call_id, e.tokens AS tokens_used, e.latency_ms, coalesce(e.metadata, '{}') AS metadata, e.created_at
FROM entries e;

-- Document 003. The messages of the active branch; where an entry's payload holds more than text, its whole content.
CREATE VIEW conversation_state AS
SELECT t.number AS id, t.id AS scid,
       coalesce((SELECT c.client_type FROM thread_clients c WHERE c.thread_id = t.id), 'unknown') AS client_type, (
    WITH RECURSIVE
    branch (seq, parent_seq) AS (
        SELECT e.seq, e.parent_seq FROM entries e
        WHERE e.thread_id = t.id AND e.seq = t.tip AND e.seq >= t.first_seq
        UNION ALL
        SELECT e.seq, e.parent_seq FROM branch b JOIN entries e ON e.thread_id = t.id AND e.seq = b.parent_seq
        WHERE b.parent_seq >= t.first_seq
    ),
    line AS (
        SELECT e.seq, e.role, e.text, e.name, e.tool_call_id,
               CASE WHEN json_valid(e.tool_calls) THEN e.tool_calls ELSE '[]' END AS tool_calls,
               CASE WHEN substr(e.payload, 1, 1) = x'7B' THEN CAST(e.payload AS TEXT) END AS payload
        FROM branch b JOIN entries e ON e.thread_id = t.id AND e.seq = b.seq
    ),
    held AS (
        SELECT *, CASE WHEN json_valid(payload) THEN json_extract(payload, '$.content', '$.content') END AS content
        FROM line
    )
    SELECT json_group_array(json(message)) FROM (
        SELECT '{"role":' || json_quote(role) || ',"content":'
               || CASE WHEN json_type(content, '$[0]') IN ('text', 'array')
                       THEN substr(content, 2, length(content) / 2 - 1) ELSE json_quote(text) END
               || CASE WHEN json_array_length(tool_calls) > 0 THEN ',"tool_calls":' || (
                      SELECT json_group_array(json_object(
                          'id', json_extract(c.value, '$.id'), 'type', 'function', 'function', json_object(
                              'name', json_extract(c.value, '$.name'),
                              'arguments', '' || json_extract(c.value, '$.args'))))
                      FROM json_each(tool_calls) c) ELSE '' END
               || CASE WHEN tool_call_id IS NOT NULL THEN ',"tool_call_id":' || json_quote(tool_call_id) ELSE '' END
               || CASE WHEN name IS NOT NULL THEN ',"name":' || json_quote(name) ELSE '' END || '}' AS message
        FROM held ORDER BY seq)
) AS authoritative_history,
       (SELECT c.last_signature FROM thread_clients c WHERE c.thread_id = t.id) AS last_signature,
       t.created_at, t.updated_at, t.expires_at,
       coalesce((SELECT c.access_count FROM thread_clients c WHERE c.thread_id = t.id), 0) AS access_count
FROM threads t;

-- Document 004.
CREATE VIEW thread_activity AS
SELECT id AS thread_id, title AS label, updated_at AS last_active_at FROM threads;
