-- The names that the source documents give to threads and entries. Nothing is stored here; all of it is computed.
-- Every change of the schema makes them again.
--
-- What is computed from the log is JSON, not JSONB: that keeps numbers and the order of keys as they were written.

-- Text as JSON, NULL when it is none. Escapes that no text of PostgreSQL's can hold (NUL, half of a surrogate pair)
-- become U+FFFD: any access to a document that holds one would fail.
CREATE OR REPLACE FUNCTION json_of(given TEXT) RETURNS JSON LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    read JSON;
    held TEXT;
BEGIN
    read := CAST(given AS JSON);
    IF given !~ '\\u(0000|[dD][89a-fA-F])' THEN
        RETURN read;
    END IF;
    -- JSON holds no control characters: they stand for escaped backslashes and for whole pairs meanwhile.
    held := replace(given, '\\', chr(1));
    held := regexp_replace(held, '\\(u[dD][89abAB][0-9a-fA-F]{2})\\(u[dD][c-fC-F][0-9a-fA-F]{2})',
                           chr(2) || '\1' || chr(2) || '\2', 'g');
    held := regexp_replace(held, '\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\\ufffd', 'g');
    RETURN CAST(replace(replace(held, chr(2), '\'), chr(1), '\\') AS JSON);
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN NULL;
END
$$;

-- Bytes as text; NULL when they are none.
CREATE OR REPLACE FUNCTION text_of(given BYTEA) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN convert_from(given, 'UTF8');
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END
$$;

-- A message's tool calls in OpenAI's form; NULL when it has none.
CREATE OR REPLACE FUNCTION function_calls(calls JSON) RETURNS JSON LANGUAGE sql IMMUTABLE
RETURN (
    SELECT json_agg(
        json_build_object('id', call ->> 'id', 'type', 'function', 'function', json_build_object(
            'name', call ->> 'name', 'arguments', CAST(call -> 'args' AS TEXT)))
        ORDER BY place)
    FROM json_array_elements(calls) WITH ORDINALITY AS c (call, place)
);

-- Document 000. `state_data` equals the fold of the active branch's entries (longthread.model.fold), and is computed
-- only where it is asked for. A step that was imported is shown as it was: an entry's metadata has it (`imported_step`).
CREATE OR REPLACE VIEW conversations AS
SELECT t.id AS thread_id, t.user_id, t.title, CAST(t.created_at AS TIMESTAMPTZ) AS created_at,
       CAST(t.updated_at AS TIMESTAMPTZ) AS updated_at, CAST(json_of(t.tool_categories) AS JSONB) AS tool_categories,
       CAST(json_of(t.tags) AS JSONB) AS tags, (
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
        SELECT p.seq, e.role, e.text, e.tool_call_id, json_of(e.tool_calls) AS tool_calls,
               json_of(e.metadata) AS note, json_of(e.metadata) ->> 'kind' AS kind,
               replace(e.created_at, '.000000+', '+') AS at
        FROM place p JOIN entries e ON e.thread_id = t.id AND e.seq = p.version
        WHERE p.seq >= t.first_seq
    ),
    asked AS (
        SELECT seq, text, note, source,
               lag(source, 1, '[null,null]') OVER (ORDER BY seq) AS source_before,
               lag(text, 1, '') OVER (ORDER BY seq) AS text_before,
               coalesce(CAST(note -> 'continues' AS TEXT) = 'true', FALSE) AS goes_on
        FROM (
            SELECT *, '[' || coalesce(CAST(note -> 'source' AS TEXT), 'null') || ','
                      || coalesce(CAST(note -> 'fingerprint' AS TEXT), 'null') || ']' AS source
            FROM line WHERE role = 'user') u
    ),
    told AS (
        SELECT seq, role, text, kind FROM line
        WHERE role = 'user' OR role = 'assistant' AND (
            kind IN ('answer', 'summary', 'interrupted')
            -- An assistant's text beside calls is the thought that led to them.
            OR kind IS NULL AND text <> '' AND coalesce(json_array_length(tool_calls), 0) = 0)
    ),
    mark AS (
        SELECT coalesce(max(seq), 0) AS last_asked,
               coalesce(max(seq) FILTER (WHERE NOT goes_on OR text_before = ''), 0) AS question,
               coalesce(max(seq) FILTER (WHERE source <> source_before), 0) AS source
        FROM asked
    ),
    -- Each result with the call of its id that came last before it, unless another result has taken that one.
    paired AS (
        SELECT seq, is_result, text, at, imported,
               lag(is_result, 1, TRUE) OVER ids AS taken,
               lag(action) OVER ids AS action,
               lag(args) OVER ids AS args,
               lag(thought) OVER ids AS thought,
               lag(seq) OVER ids AS called_at
        FROM (
            SELECT l.seq, c.idx, FALSE AS is_result, coalesce(c.value ->> 'id', '') AS call_id,
                   c.value -> 'name' AS action, c.value -> 'args' AS args,
                   CASE WHEN l.kind = 'malformed' THEN '' ELSE l.text END AS thought, NULL AS text, NULL AS at,
                   CAST(NULL AS JSON) AS imported
            FROM line l CROSS JOIN LATERAL json_array_elements(l.tool_calls) WITH ORDINALITY AS c (value, idx)
            WHERE l.role = 'assistant'
            UNION ALL
            SELECT seq, 0, TRUE, coalesce(tool_call_id, ''), NULL, NULL, NULL, text, at, note -> 'imported_step'
            FROM line WHERE role = 'tool'
        ) p
        WINDOW ids AS (PARTITION BY call_id ORDER BY seq, idx)
    ),
    observed AS (
        SELECT seq, at, text, CAST(action AS TEXT) AS action, args, thought, called_at, imported,
               CASE WHEN body IS NULL THEN json_build_object('ok', TRUE, 'data', text)
                    WHEN json_typeof(body) = 'object' AND body -> 'ok' IS NOT NULL THEN body
                    ELSE json_build_object('ok', TRUE, 'data', body) END AS observation
        FROM (SELECT *, json_of(regexp_replace(text, '^Observation: ', '')) AS body
              FROM paired WHERE is_result AND NOT taken) p
    ),
    done AS (
        SELECT *,
               CASE json_typeof(observation -> 'ok')
                   WHEN 'boolean' THEN CAST(observation -> 'ok' AS TEXT) = 'true'
                   WHEN 'null' THEN FALSE
                   WHEN 'array' THEN json_array_length(observation -> 'ok') > 0
                   WHEN 'object' THEN CAST(observation -> 'ok' AS TEXT) !~ '^\{\s*\}$'
                   WHEN 'string' THEN CAST(observation -> 'ok' AS TEXT) <> '""'
                   ELSE CAST(observation -> 'ok' AS TEXT) !~ '^-?0(\.0+)?([eE][-+]?[0-9]+)?$' END AS ok
        FROM observed
    ),
    learned AS (
        SELECT seq, action, observation -> 'data' AS data
        FROM done
        WHERE ok AND json_typeof(observation -> 'data') = 'object' AND seq > (SELECT source FROM mark)
    ),
    described AS (
        SELECT seq, action, data, data ->> 'table_name' AS name
        FROM learned
        WHERE action IN ('"describe_table"', '"sample_rows"') AND json_typeof(data -> 'table_name') = 'string'
    ),
    known AS (
        SELECT action, name, data,
               row_number() OVER (PARTITION BY action, name ORDER BY seq DESC) AS age,
               min(seq) OVER (PARTITION BY action, name) AS first
        FROM described
    ),
    named AS (
        SELECT seq, 0 AS idx, CAST(to_json(name) AS TEXT) AS name FROM described
        UNION ALL
        SELECT l.seq, n.idx, CAST(to_json(n.value #>> '{}') AS TEXT)
        FROM learned l CROSS JOIN LATERAL json_array_elements(
            CASE json_typeof(l.data -> 'tables') WHEN 'array' THEN l.data -> 'tables' END
        ) WITH ORDINALITY AS n (value, idx)
        WHERE l.action = '"list_tables"' AND json_typeof(n.value) = 'string'
    ),
    -- What an import brought with the last entry.
    imported AS (
        SELECT CASE json_typeof(json_of(e.metadata) -> 'imported_state') WHEN 'object'
                    THEN json_of(e.metadata) -> 'imported_state' END AS given
        FROM entries e WHERE e.thread_id = t.id AND e.seq = t.tip
    ),
    answered AS (
        SELECT seq, at, text, note -> 'imported_step' AS imported FROM line WHERE role = 'assistant' AND kind = 'answer'
    )
    SELECT json_build_object(
        'question', coalesce((SELECT given -> 'question' FROM imported), to_json(coalesce((SELECT text FROM asked WHERE seq = (SELECT question FROM mark)), ''))),
        'messages', coalesce((
            SELECT json_agg(json_build_object('role', role, 'content', text) ORDER BY seq) FROM told), '[]'),
        'steps', coalesce((
            SELECT json_agg(step ORDER BY seq) FROM (
                SELECT seq, CASE WHEN json_typeof(imported) = 'object' THEN imported ELSE json_build_object(
                    'step_index', row_number() OVER (ORDER BY seq) - 1, 'step_type', step_type, 'thought', thought,
                    'action', CAST(action AS JSON), 'args', args, 'observation', observation, 'content', text,
                    'timestamp', at) END AS step
                FROM (
                    SELECT seq, CASE action WHEN '"json_parse_error"' THEN 'error' ELSE 'action' END AS step_type,
                           thought, action, args, observation, text, at, imported
                    FROM done
                    UNION ALL
                    SELECT seq, 'finish', '', '"finish"', '{}', NULL, text, at, imported FROM answered) s
                WHERE imported IS NULL OR CAST(imported AS TEXT) <> 'false') s), '[]'),
        'known_tables', coalesce((SELECT given -> 'known_tables' FROM imported), CAST(coalesce((
            SELECT json_agg(CAST(name AS JSON) ORDER BY seq, idx) FROM (
                SELECT name, seq, idx, row_number() OVER (PARTITION BY name ORDER BY seq, idx) AS nth FROM named) n
            WHERE nth = 1), '[]') AS JSON)),
        'known_schemas', coalesce((SELECT given -> 'known_schemas' FROM imported), CAST(coalesce((
            SELECT json_object_agg(name, data ORDER BY first) FROM known
            WHERE action = '"describe_table"' AND age = 1), '{}') AS JSON)),
        'candidate_tables', coalesce((SELECT given -> 'candidate_tables' FROM imported), CAST(coalesce((
            SELECT json_agg(name ORDER BY seq) FROM (
                SELECT args ->> 'table' AS name, min(seq) AS seq FROM done
                WHERE action IN ('"describe_table"', '"sample_rows"') AND json_typeof(args -> 'table') = 'string'
                  AND seq > (SELECT question FROM mark)
                GROUP BY 1) c), '[]') AS JSON)),
        'known_samples', coalesce((SELECT given -> 'known_samples' FROM imported), CAST(coalesce((
            SELECT json_object_agg(name, data ORDER BY first) FROM known
            WHERE action = '"sample_rows"' AND age = 1), '{}') AS JSON)),
        'error_history', coalesce((SELECT given -> 'error_history' FROM imported), CAST(coalesce((
            SELECT json_agg(json_build_object(
                'action', CAST(action AS JSON), 'error', observation -> 'error', 'timestamp', at) ORDER BY seq)
            FROM done WHERE NOT ok), '[]') AS JSON)),
        'sql_history', coalesce((
            SELECT json_agg(
                json_build_object('sql', args -> 'sql', 'result', observation, 'timestamp', at) ORDER BY seq)
            FROM done WHERE action = '"run_sql"'), '[]'),
        'last_error', coalesce((SELECT given -> 'last_error' FROM imported), (
            SELECT json_build_object('action', CAST(action AS JSON), 'error', observation -> 'error', 'timestamp', at)
            FROM done
            -- Who made a call behind an error had seen it; one that was made beside it says nothing about it.
            WHERE NOT ok AND seq > greatest(
                (SELECT question FROM mark), (SELECT coalesce(max(called_at) FILTER (WHERE ok), 0) FROM done),
                (SELECT coalesce(max(seq), 0) FROM told WHERE role = 'assistant' AND kind IS DISTINCT FROM 'summary'))
            ORDER BY seq DESC LIMIT 1)),
        'done', coalesce((SELECT given -> 'done' FROM imported), to_json(EXISTS (SELECT FROM answered WHERE seq > (SELECT last_asked FROM mark)))),
        'answer', coalesce((SELECT given -> 'answer' FROM imported), (
            SELECT json_build_object('ok', TRUE, 'data', text) FROM answered
            WHERE seq > (SELECT last_asked FROM mark) ORDER BY seq DESC LIMIT 1)),
        'max_steps', coalesce((SELECT given -> 'max_steps' FROM imported), (
            SELECT note -> 'max_steps' FROM asked WHERE note -> 'max_steps' IS NOT NULL ORDER BY seq DESC LIMIT 1)),
        'compressed_summary', (SELECT summary FROM conversation_summaries s WHERE s.thread_id = t.id),
        'compressed_message_count',
            coalesce((SELECT CASE WHEN s.last_seq IS NULL THEN s.message_count
                                  ELSE (SELECT count(*) FROM told WHERE seq <= s.last_seq) END
                      FROM conversation_summaries s WHERE s.thread_id = t.id), 0),
        'compressed_config_hash', (SELECT config_hash FROM conversation_summaries s WHERE s.thread_id = t.id)
    )
) AS state_data
FROM threads t;

CREATE OR REPLACE VIEW conversation_steps AS
SELECT t.number * 4294967296 + (s.place - 1) AS id, t.id AS thread_id, CAST(s.place - 1 AS INT) AS step_index,
       s.step AS step_data, CAST(s.step ->> 'timestamp' AS TIMESTAMPTZ) AS created_at
FROM threads t JOIN conversations c ON c.thread_id = t.id
CROSS JOIN LATERAL json_array_elements(c.state_data -> 'steps') WITH ORDINALITY AS s (step, place);

-- Document 002. The status of a session follows from its last run; the thread's own is for one without runs, or was set
-- after that run stood as it does (`status_after`).
CREATE OR REPLACE VIEW sessions AS
SELECT t.id, t.agent_id, t.user_id,
       CASE WHEN r.id IS NULL OR r.state = t.status_after THEN t.status WHEN r.status = 'finished' THEN 'completed'
            WHEN r.waiting_since IS NOT NULL THEN 'paused' WHEN r.status = 'running' THEN 'active' ELSE r.status END AS status,
       t.title, CAST(json_of(t.metadata) AS JSONB) AS metadata, CAST(t.created_at AS TIMESTAMPTZ) AS started_at,
       CAST(CASE WHEN r.id IS NULL OR r.state = t.status_after THEN t.ended_at
                 WHEN r.status IN ('finished', 'failed') THEN r.ended_at END AS TIMESTAMPTZ) AS ended_at,
       CAST(t.created_at AS TIMESTAMPTZ) AS created_at
FROM threads t
LEFT JOIN (
    SELECT thread_id, id, status, waiting_since, ended_at, id || ' ' || CASE
               WHEN status = 'running' AND waiting_since IS NOT NULL THEN 'waiting' ELSE status END AS state
    FROM runs
) r ON r.thread_id = t.id AND r.id = (SELECT max(x.id) FROM runs x WHERE x.thread_id = t.id);

CREATE OR REPLACE VIEW messages AS
SELECT e.id, e.thread_id AS session_id,
       (SELECT p.id FROM entries p WHERE p.thread_id = e.thread_id AND p.seq = e.parent_seq) AS parent_id,
       e.role, e.text AS content, CAST(function_calls(json_of(e.tool_calls)) AS JSONB) AS tool_calls, e.tool_call_id,
       CAST(e.tokens AS INTEGER) AS tokens_used, CAST(e.latency_ms AS INTEGER) AS latency_ms,
       -- What people noted goes before what Longthread did.
       coalesce(CAST(json_of(e.metadata) AS JSONB), '{}') || coalesce(CAST(json_of(m.data) AS JSONB), '{}') AS metadata,
       CAST(e.created_at AS TIMESTAMPTZ) AS created_at
FROM entries e LEFT JOIN message_metadata m ON m.thread_id = e.thread_id AND m.seq = e.seq;

-- Document 003. The messages of the active branch; where an entry's payload holds more than text, its whole content. Where
-- it holds a client's whole message (`client_messages`), that; an empty list there: the entry is part of the one before,
-- unless retention has deleted that.
CREATE OR REPLACE VIEW conversation_state AS
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
        SELECT p.seq, e.role, e.text, e.name, e.tool_call_id, function_calls(json_of(e.tool_calls)) AS calls,
               json_of(CASE WHEN substr(e.payload, 1, 1) = '\x7B' THEN text_of(e.payload) END) AS payload
        FROM place p JOIN entries e ON e.thread_id = t.id AND e.seq = p.version
        WHERE p.seq >= t.first_seq
    ),
    held AS (
        SELECT *, payload -> 'content' AS content,
               CASE json_typeof(payload -> 'client_messages') WHEN 'array' THEN payload -> 'client_messages' END AS messages
        FROM line
    )
    SELECT coalesce(json_agg(CASE WHEN json_array_length(messages) > 0 THEN messages -> 0 ELSE CAST(
        '{"role":' || to_json(role) || ',"content":'
        || CASE WHEN json_typeof(content) IN ('string', 'array') THEN content ELSE to_json(text) END
        || coalesce(',"tool_calls":' || calls, '') || coalesce(',"tool_call_id":' || to_json(tool_call_id), '')
        || coalesce(',"name":' || to_json(name), '') || '}' AS JSON) END ORDER BY seq), '[]')
    FROM held WHERE json_array_length(messages) IS DISTINCT FROM 0 OR seq = (SELECT min(seq) FROM branch)
) AS authoritative_history,
       (SELECT c.last_signature FROM thread_clients c WHERE c.thread_id = t.id) AS last_signature,
       CAST(t.created_at AS TIMESTAMPTZ) AS created_at, CAST(t.updated_at AS TIMESTAMPTZ) AS updated_at,
       CAST(t.expires_at AS TIMESTAMPTZ) AS expires_at,
       coalesce((SELECT c.access_count FROM thread_clients c WHERE c.thread_id = t.id), 0) AS access_count
FROM threads t;

-- Document 004.
CREATE OR REPLACE VIEW thread_activity AS
SELECT id AS thread_id, title AS label, CAST(updated_at AS TIMESTAMPTZ) AS last_active_at FROM threads;

-- PostgreSQL keeps samples of a column's values for its planner, also when the rows are gone. Of what people say none are
-- kept: nothing is looked for by such a column alone.
DO $$
DECLARE
    place RECORD;
BEGIN
    FOR place IN
        SELECT c.oid::regclass AS name, a.attname AS part
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        JOIN pg_type t ON t.oid = a.atttypid
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
          AND (t.typname IN ('text', 'varchar', 'json', 'jsonb', 'bytea', 'vector') OR t.typcategory = 'A')
          AND c.relname <> 'longthread_migrations'
          AND (a.attname IN ('topic', 'topics', 'embedding') OR NOT EXISTS (
              SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND a.attnum = ANY (i.indkey::INT2[])
          ))
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', place.name, place.part);
    END LOOP;
END
$$;
