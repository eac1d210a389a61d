-- The names that the source documents give to threads and entries. Nothing is stored here; all of it is computed.
-- Every change of the schema makes them again.
--
-- `json_extract(x, p, p)` gives `[v,v]` with v as it was written: the text between is the value without a loss, which a
-- single path would give as a number, a text or a boolean of SQL's.

DROP VIEW IF EXISTS conversation_steps;
DROP VIEW IF EXISTS conversations;
DROP VIEW IF EXISTS sessions;
DROP VIEW IF EXISTS messages;
DROP VIEW IF EXISTS conversation_state;
DROP VIEW IF EXISTS thread_activity;
DROP VIEW IF EXISTS state_ends;

-- Document 000. `state_data` equals the fold of the active branch's entries (longthread.model.fold), and is computed
-- only where it is asked for. A step that was imported is shown as it was: an entry's metadata has it (`imported_step`).
CREATE VIEW conversations AS
SELECT t.id AS thread_id, t.user_id, t.title, t.created_at, t.updated_at, t.tool_categories, t.tags, (
    WITH RECURSIVE
    branch (seq, parent_seq, replaces) AS (
        SELECT e.seq, e.parent_seq, e.replaces FROM entries e
        WHERE e.thread_id = t.id AND e.seq = t.tip AND e.seq >= t.first_seq
        UNION ALL
        SELECT e.seq, e.parent_seq, e.replaces FROM branch b
        JOIN entries e ON e.thread_id = t.id AND e.seq = b.parent_seq
        WHERE b.parent_seq >= t.first_seq
    ),
    -- In each place the newest version on the branch.
    place (seq, version) AS (
        SELECT coalesce(replaces, seq), max(seq) FROM branch GROUP BY coalesce(replaces, seq)
    ),
    line AS (
        SELECT p.seq, e.role, e.text, e.tool_call_id, replace(e.created_at, '.000000+', '+') AS at,
               CASE WHEN json_valid(e.tool_calls) THEN e.tool_calls ELSE '[]' END AS tool_calls,
               CASE WHEN json_valid(e.metadata) THEN e.metadata ELSE '{}' END AS note
        FROM place p JOIN entries e ON e.thread_id = t.id AND e.seq = p.version
        WHERE p.seq >= t.first_seq
    ),
    -- The entries and, each as a row of its own, the calls of the assistant's.
    event AS (
        SELECT seq, 0 AS idx, role, text, at, note, CASE role WHEN 'assistant' THEN json_extract(note, '$.kind') END AS kind,
               json_extract(note, '$.source', '$.fingerprint') AS source,
               json_type(note, '$.continues') IS 'true' AS goes_on,
               CASE role WHEN 'tool' THEN coalesce(tool_call_id, '') END AS call_id,
               NULL AS action, NULL AS args, NULL AS thought,
               -- An assistant's text beside calls is the thought that led to them.
               role = 'user' OR role = 'assistant' AND (
                   coalesce(json_extract(note, '$.kind') IN ('answer', 'summary', 'interrupted'), FALSE)
                   OR json_extract(note, '$.kind') IS NULL AND text <> '' AND json_array_length(tool_calls) = 0) AS told
        FROM line
        UNION ALL
        SELECT l.seq, c.key, 'call', NULL, NULL, NULL, NULL, NULL, NULL, coalesce(json_extract(c.value, '$.id'), ''),
               json_extract(c.value, '$.name', '$.name'), json_extract(c.value, '$.args'),
               CASE json_extract(l.note, '$.kind') WHEN 'malformed' THEN '' ELSE l.text END, FALSE
        FROM line l JOIN json_each(l.tool_calls) c WHERE l.role = 'assistant'
    ),
    -- A result goes with the call of its id that came last before it, unless another result has taken that one.
    paired AS (
        SELECT seq, role, text, at, note, kind, told,
               lag(role) OVER of_id AS before, lag(action) OVER of_id AS action, lag(args) OVER of_id AS args,
               lag(thought) OVER of_id AS thought, lag(seq) OVER of_id AS called_at,
               role = 'user' AND (NOT goes_on OR lag(text, 1, '') OVER of_role = '') AS begins,
               role = 'user' AND source <> lag(source, 1, '[null,null]') OVER of_role AS turns
        FROM event
        WINDOW of_id AS (PARTITION BY call_id ORDER BY seq, idx), of_role AS (PARTITION BY role ORDER BY seq, idx)
    ),
    -- Where the last question stands, the last message of the user's, the last change of the source, and so on.
    marked AS (
        SELECT seq, role, text, at, note, kind, told, thought, called_at, args, substr(action, 2, length(action) / 2 - 1) AS action,
               coalesce(max(CASE WHEN begins THEN seq END) OVER (), 0) AS question,
               coalesce(max(CASE role WHEN 'user' THEN seq END) OVER (), 0) AS asked,
               coalesce(max(CASE WHEN turns THEN seq END) OVER (), 0) AS turned,
               max(CASE WHEN role = 'user' AND json_type(note, '$.max_steps') IS NOT NULL THEN seq END) OVER () AS budget,
               max(CASE kind WHEN 'answer' THEN seq END) OVER () AS answered,
               CASE WHEN role <> 'tool' THEN NULL
                    WHEN substr(text, 1, 13) = 'Observation: ' THEN substr(text, 14) ELSE text END AS body
        FROM paired WHERE role IN ('user', 'assistant') OR role = 'tool' AND before = 'call'
    ),
    observed AS (
        SELECT *,
               CASE WHEN role <> 'tool' THEN NULL
                    WHEN NOT json_valid(body) THEN json_object('ok', json('true'), 'data', text)
                    WHEN json_type(body) = 'object' AND json_type(body, '$.ok') IS NOT NULL THEN json(body)
                    ELSE json_object('ok', json('true'), 'data', json(body)) END AS observation
        FROM marked
    ),
    judged AS (
        SELECT *,
               CASE json_type(observation, '$.ok')
                   WHEN 'true' THEN 1
                   WHEN 'false' THEN 0
                   WHEN 'null' THEN 0
                   WHEN 'array' THEN json_extract(observation, '$.ok') <> '[]'
                   WHEN 'object' THEN json_extract(observation, '$.ok') <> '{}'
                   WHEN 'text' THEN json_extract(observation, '$.ok') <> ''
                   ELSE json_extract(observation, '$.ok') <> 0 END AS ok,
               CASE WHEN action IN ('"describe_table"', '"sample_rows"') AND json_type(args, '$.table') = 'text'
                         AND seq > question THEN json_extract(args, '$.table') END AS candidate
        FROM observed
    ),
    learned AS (
        SELECT *,
               CASE WHEN NOT ok OR json_type(observation, '$.data') <> 'object' OR seq <= turned THEN NULL
                    WHEN action = '"list_tables"' AND json_type(observation, '$.data.tables') = 'array'
                        THEN json_extract(observation, '$.data.tables')
                    WHEN action IN ('"describe_table"', '"sample_rows"')
                         AND json_type(observation, '$.data.table_name') = 'text'
                        THEN json_array(json_extract(observation, '$.data.table_name')) END AS names,
               coalesce(role = 'tool' OR kind = 'answer', FALSE)
                   AND coalesce(json_type(note, '$.imported_step'), '') <> 'false' AS is_step,
               CASE json_type(note, '$.imported_step') WHEN 'object' THEN json_extract(note, '$.imported_step') END AS imported
        FROM judged
    ),
    known AS (
        SELECT *,
               row_number() OVER (PARTITION BY is_step ORDER BY seq) - 1 AS step_index,
               row_number() OVER (PARTITION BY candidate ORDER BY seq) AS nth_candidate,
               row_number() OVER of_table AS nth_look, last_value(observation) OVER of_table AS last_look
        FROM learned
        WINDOW of_table AS (PARTITION BY action, names ORDER BY seq
                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    ),
    state AS (
        SELECT max(CASE seq WHEN question THEN text END) AS question,
               json_group_array(json_object('role', role, 'content', text))
                   FILTER (WHERE told) AS messages,
               json_group_array(CASE WHEN imported IS NOT NULL THEN json(imported) ELSE json_object(
                   'step_index', step_index,
                   'step_type', CASE WHEN kind = 'answer' THEN 'finish' WHEN action = '"json_parse_error"' THEN 'error'
                                     ELSE 'action' END,
                   'thought', coalesce(thought, ''), 'action', json(coalesce(action, '"finish"')),
                   'args', json(coalesce(args, '{}')), 'observation', json(observation), 'content', text,
                   'timestamp', at) END) FILTER (WHERE is_step) AS steps,
               json_group_array(json(names)) FILTER (WHERE names IS NOT NULL) AS names,
               json_group_object(json_extract(names, '$[0]'), json(json_extract(last_look, '$.data')))
                   FILTER (WHERE nth_look = 1 AND names IS NOT NULL AND action = '"describe_table"') AS schemas,
               json_group_object(json_extract(names, '$[0]'), json(json_extract(last_look, '$.data')))
                   FILTER (WHERE nth_look = 1 AND names IS NOT NULL AND action = '"sample_rows"') AS samples,
               json_group_array(candidate) FILTER (WHERE nth_candidate = 1 AND candidate IS NOT NULL) AS candidates,
               json_group_array(json_object(
                   'action', json(action), 'error', json(substr(error, 2, length(error) / 2 - 1)), 'timestamp', at))
                   FILTER (WHERE NOT ok) AS errors,
               -- Who made a call behind an error had seen it; one that was made beside it says nothing about it.
               max(CASE WHEN NOT ok THEN seq END) > max(
                   max(question), coalesce(max(CASE WHEN ok THEN called_at END), 0),
                   coalesce(max(CASE WHEN told AND role = 'assistant' AND kind IS NOT 'summary' THEN seq END), 0)) AS failed,
               count(*) FILTER (WHERE told AND seq <= (
                   SELECT s.last_seq FROM conversation_summaries s WHERE s.thread_id = t.id)) AS compressed,
               json_group_array(json_object(
                   'sql', json(substr(sql, 2, length(sql) / 2 - 1)), 'result', json(observation), 'timestamp', at))
                   FILTER (WHERE action = '"run_sql"') AS queries,
               max(CASE WHEN seq = answered AND seq > asked THEN text END) AS answer,
               max(CASE seq WHEN budget THEN substr(max_steps, 2, length(max_steps) / 2 - 1) END) AS max_steps
        FROM (
            SELECT *, CASE WHEN NOT ok THEN json_extract(observation, '$.error', '$.error') END AS error,
                   CASE action WHEN '"run_sql"' THEN json_extract(args, '$.sql', '$.sql') END AS sql,
                   CASE seq WHEN budget THEN json_extract(note, '$.max_steps', '$.max_steps') END AS max_steps
            FROM known ORDER BY seq)
    )
    SELECT json_object(
        'question', GIVEN[question; coalesce(question, '')],
        'messages', json(messages),
        'steps', json(steps),
        'known_tables', GIVEN[known_tables; json((
            SELECT json_group_array(json(name)) FROM (
                SELECT name FROM (
                    SELECT n.key AS result, m.key AS place, json_quote(m.value) AS name
                    FROM json_each(names) n JOIN json_each(n.value) m WHERE m.type = 'text')
                GROUP BY name ORDER BY min(result * 4294967296 + place))))],
        'known_schemas', GIVEN[known_schemas; json(schemas)],
        'candidate_tables', GIVEN[candidate_tables; json(candidates)],
        'known_samples', GIVEN[known_samples; json(samples)],
        'error_history', GIVEN[error_history; json(errors)],
        'sql_history', json(queries),
        'last_error', GIVEN[last_error; CASE WHEN failed THEN json(json_extract(errors, '$' || char(91) || '#-1' || char(93))) END],
        'done', GIVEN[done; json(CASE WHEN answer IS NULL THEN 'false' ELSE 'true' END)],
        'answer', GIVEN[answer; CASE WHEN answer IS NOT NULL THEN json_object('ok', json('true'), 'data', answer) END],
        'max_steps', GIVEN[max_steps; json(max_steps)],
        'compressed_summary', (SELECT summary FROM conversation_summaries s WHERE s.thread_id = t.id),
        'compressed_message_count',
            coalesce((SELECT CASE WHEN s.last_seq IS NULL THEN s.message_count ELSE compressed END
                      FROM conversation_summaries s WHERE s.thread_id = t.id), 0),
        'compressed_config_hash', (SELECT config_hash FROM conversation_summaries s WHERE s.thread_id = t.id)
    ) FROM state, (
        SELECT max(CASE WHEN json_type(e.metadata, '$.imported_state') = 'object'
                        THEN json_extract(e.metadata, '$.imported_state') END) AS given
        FROM entries e WHERE e.thread_id = t.id AND e.seq = t.tip AND json_valid(e.metadata)
    )
) AS state_data
FROM threads t;

CREATE VIEW conversation_steps AS
SELECT t.number * 4294967296 + s.key AS id, t.id AS thread_id, s.key AS step_index, s.value AS step_data,
       json_extract(s.value, '$.timestamp') AS created_at
FROM threads t JOIN conversations c ON c.thread_id = t.id JOIN json_each(c.state_data, '$.steps') s;

-- Document 002. The status of a session follows from its last run; the thread's own is for one without runs, or was set
-- after that run stood as it does (`status_after`).
CREATE VIEW sessions AS
SELECT t.id, t.agent_id, t.user_id,
       CASE WHEN r.id IS NULL OR r.state = t.status_after THEN t.status WHEN r.status = 'finished' THEN 'completed'
            WHEN r.waiting_since IS NOT NULL THEN 'paused' WHEN r.status = 'running' THEN 'active' ELSE r.status END AS status,
       t.title, t.metadata, t.created_at AS started_at,
       CASE WHEN r.id IS NULL OR r.state = t.status_after THEN t.ended_at
            WHEN r.status IN ('finished', 'failed') THEN r.ended_at END AS ended_at,
       t.created_at
FROM threads t
LEFT JOIN (
    SELECT thread_id, id, status, waiting_since, ended_at, id || ' ' || CASE
               WHEN status = 'running' AND waiting_since IS NOT NULL THEN 'waiting' ELSE status END AS state
    FROM runs
) r ON r.thread_id = t.id AND r.id = (SELECT max(x.id) FROM runs x WHERE x.thread_id = t.id);

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

-- Document 003. The messages of the active branch; where an entry's payload holds more than text, its whole content. Where
-- it holds a client's whole message (`client_messages`), that; an empty list there: the entry is part of the one before,
-- unless retention has deleted that.
CREATE VIEW conversation_state AS
SELECT t.number AS id, t.id AS scid,
       coalesce((SELECT c.client_type FROM thread_clients c WHERE c.thread_id = t.id), 'unknown') AS client_type, (
    WITH RECURSIVE
    branch (seq, parent_seq, replaces) AS (
        SELECT e.seq, e.parent_seq, e.replaces FROM entries e
        WHERE e.thread_id = t.id AND e.seq = t.tip AND e.seq >= t.first_seq
        UNION ALL
        SELECT e.seq, e.parent_seq, e.replaces FROM branch b
        JOIN entries e ON e.thread_id = t.id AND e.seq = b.parent_seq
        WHERE b.parent_seq >= t.first_seq
    ),
    -- In each place the newest version on the branch.
    place (seq, version) AS (
        SELECT coalesce(replaces, seq), max(seq) FROM branch GROUP BY coalesce(replaces, seq)
    ),
    line AS (
        SELECT p.seq, e.role, e.text, e.name, e.tool_call_id,
               CASE WHEN json_valid(e.tool_calls) THEN e.tool_calls ELSE '[]' END AS tool_calls,
               CASE WHEN substr(e.payload, 1, 1) = x'7B' THEN CAST(e.payload AS TEXT) END AS payload
        FROM place p JOIN entries e ON e.thread_id = t.id AND e.seq = p.version
        WHERE p.seq >= t.first_seq
    ),
    held AS (
        SELECT *, CASE WHEN json_valid(payload) THEN json_extract(payload, '$.content', '$.content') END AS content,
               CASE WHEN json_valid(payload) AND json_type(payload, '$.client_messages') = 'array'
                    THEN json_array_length(payload, '$.client_messages') END AS messages
        FROM line
    )
    SELECT json_group_array(json(message)) FROM (
        SELECT CASE WHEN messages > 0 THEN (
                   SELECT substr(whole, 2, length(whole) / 2 - 1) FROM (
                       SELECT json_extract(payload, '$.client_messages[0]', '$.client_messages[0]') AS whole))
               ELSE '{"role":' || json_quote(role) || ',"content":'
               || CASE WHEN json_type(content, '$[0]') IN ('text', 'array')
                       THEN substr(content, 2, length(content) / 2 - 1) ELSE json_quote(text) END
               || CASE WHEN json_array_length(tool_calls) > 0 THEN ',"tool_calls":' || (
                      SELECT json_group_array(json_object(
                          'id', json_extract(c.value, '$.id'), 'type', 'function', 'function', json_object(
                              'name', json_extract(c.value, '$.name'),
                              'arguments', '' || json_extract(c.value, '$.args'))))
                      FROM json_each(tool_calls) c) ELSE '' END
               || CASE WHEN tool_call_id IS NOT NULL THEN ',"tool_call_id":' || json_quote(tool_call_id) ELSE '' END
               || CASE WHEN name IS NOT NULL THEN ',"name":' || json_quote(name) ELSE '' END || '}' END AS message
        FROM held WHERE messages IS NOT 0 OR seq = (SELECT min(seq) FROM branch) ORDER BY seq)
) AS authoritative_history,
       (SELECT c.last_signature FROM thread_clients c WHERE c.thread_id = t.id) AS last_signature,
       t.created_at, t.updated_at, t.expires_at,
       coalesce((SELECT c.access_count FROM thread_clients c WHERE c.thread_id = t.id), 0) AS access_count
FROM threads t;

-- Document 004.
CREATE VIEW thread_activity AS
SELECT id AS thread_id, title AS label, updated_at AS last_active_at FROM threads;
-- The last entry of each message of a thread's active branch, as document 003 has them.
CREATE VIEW state_ends AS
SELECT t.id AS thread_id, s.key AS place, s.value AS seq
FROM threads t JOIN json_each((
    WITH RECURSIVE
    branch (seq, parent_seq, replaces) AS (
        SELECT e.seq, e.parent_seq, e.replaces FROM entries e
        WHERE e.thread_id = t.id AND e.seq = t.tip AND e.seq >= t.first_seq
        UNION ALL
        SELECT e.seq, e.parent_seq, e.replaces FROM branch b
        JOIN entries e ON e.thread_id = t.id AND e.seq = b.parent_seq
        WHERE b.parent_seq >= t.first_seq
    ),
    place (seq, version) AS (
        SELECT coalesce(replaces, seq), max(seq) FROM branch GROUP BY coalesce(replaces, seq)
    ),
    line AS (
        SELECT p.seq, CASE WHEN substr(e.payload, 1, 1) = x'7B' THEN CAST(e.payload AS TEXT) END AS payload
        FROM place p JOIN entries e ON e.thread_id = t.id AND e.seq = p.version
        WHERE p.seq >= t.first_seq
    ),
    counted AS (
        SELECT seq, sum(CASE WHEN json_valid(payload) AND json_type(payload, '$.client_messages') = 'array'
                                  AND json_array_length(payload, '$.client_messages') = 0
                                  AND seq > (SELECT min(seq) FROM branch) THEN 0 ELSE 1 END)
                    OVER (ORDER BY seq) AS message
        FROM line
    )
    SELECT json_group_array(last) FROM (SELECT max(seq) AS last FROM counted GROUP BY message ORDER BY message)
)) s;
