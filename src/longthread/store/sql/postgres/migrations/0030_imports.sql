-- A step that an import has brought is told as it was: an entry's metadata holds it (`imported_step`), or says that there
-- was none.

-- `state_data` equals the fold of the active branch's entries (longthread.model.fold).
CREATE OR REPLACE VIEW conversations AS
SELECT t.id AS thread_id, t.user_id, t.title, CAST(t.created_at AS TIMESTAMPTZ) AS created_at,
       CAST(t.updated_at AS TIMESTAMPTZ) AS updated_at, CAST(json_of(t.tool_categories) AS JSONB) AS tool_categories,
       CAST(json_of(t.tags) AS JSONB) AS tags, (
    WITH RECURSIVE
    branch (seq, parent_seq) AS (
        SELECT e.seq, e.parent_seq FROM entries e
        WHERE e.thread_id = t.id AND e.seq = t.tip AND e.seq >= t.first_seq
        UNION ALL
        SELECT e.seq, e.parent_seq FROM branch b JOIN entries e ON e.thread_id = t.id AND e.seq = b.parent_seq
        WHERE b.parent_seq >= t.first_seq
    ),
    line AS (
        SELECT e.seq, e.role, e.text, e.tool_call_id, json_of(e.tool_calls) AS tool_calls,
               json_of(e.metadata) AS note, json_of(e.metadata) ->> 'kind' AS kind,
               replace(e.created_at, '.000000+', '+') AS at
        FROM branch b JOIN entries e ON e.thread_id = t.id AND e.seq = b.seq
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
            kind IN ('answer', 'summary')
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
    answered AS (
        SELECT seq, at, text, note -> 'imported_step' AS imported FROM line WHERE role = 'assistant' AND kind = 'answer'
    )
    SELECT json_build_object(
        'question', coalesce((SELECT text FROM asked WHERE seq = (SELECT question FROM mark)), ''),
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
        'known_tables', coalesce((
            SELECT json_agg(CAST(name AS JSON) ORDER BY seq, idx) FROM (
                SELECT name, seq, idx, row_number() OVER (PARTITION BY name ORDER BY seq, idx) AS nth FROM named) n
            WHERE nth = 1), '[]'),
        'known_schemas', coalesce((
            SELECT json_object_agg(name, data ORDER BY first) FROM known
            WHERE action = '"describe_table"' AND age = 1), '{}'),
        'candidate_tables', coalesce((
            SELECT json_agg(name ORDER BY seq) FROM (
                SELECT args ->> 'table' AS name, min(seq) AS seq FROM done
                WHERE action IN ('"describe_table"', '"sample_rows"') AND json_typeof(args -> 'table') = 'string'
                  AND seq > (SELECT question FROM mark)
                GROUP BY 1) c), '[]'),
        'known_samples', coalesce((
            SELECT json_object_agg(name, data ORDER BY first) FROM known
            WHERE action = '"sample_rows"' AND age = 1), '{}'),
        'error_history', coalesce((
            SELECT json_agg(json_build_object(
                'action', CAST(action AS JSON), 'error', observation -> 'error', 'timestamp', at) ORDER BY seq)
            FROM done WHERE NOT ok), '[]'),
        'sql_history', coalesce((
            SELECT json_agg(
                json_build_object('sql', args -> 'sql', 'result', observation, 'timestamp', at) ORDER BY seq)
            FROM done WHERE action = '"run_sql"'), '[]'),
        'last_error', (
            SELECT json_build_object('action', CAST(action AS JSON), 'error', observation -> 'error', 'timestamp', at)
            FROM done
            -- Who made a call behind an error had seen it; one that was made beside it says nothing about it.
            WHERE NOT ok AND seq > greatest(
                (SELECT question FROM mark), (SELECT coalesce(max(called_at) FILTER (WHERE ok), 0) FROM done),
                (SELECT coalesce(max(seq), 0) FROM told WHERE role = 'assistant' AND kind IS DISTINCT FROM 'summary'))
            ORDER BY seq DESC LIMIT 1),
        'done', EXISTS (SELECT FROM answered WHERE seq > (SELECT last_asked FROM mark)),
        'answer', (
            SELECT json_build_object('ok', TRUE, 'data', text) FROM answered
            WHERE seq > (SELECT last_asked FROM mark) ORDER BY seq DESC LIMIT 1),
        'max_steps', (
            SELECT note -> 'max_steps' FROM asked WHERE note -> 'max_steps' IS NOT NULL ORDER BY seq DESC LIMIT 1),
        'compressed_summary', (SELECT summary FROM conversation_summaries s WHERE s.thread_id = t.id),
        'compressed_message_count',
            coalesce((SELECT CASE WHEN s.last_seq IS NULL THEN s.message_count
                                  ELSE (SELECT count(*) FROM told WHERE seq <= s.last_seq) END
                      FROM conversation_summaries s WHERE s.thread_id = t.id), 0),
        'compressed_config_hash', (SELECT config_hash FROM conversation_summaries s WHERE s.thread_id = t.id)
    )
) AS state_data
FROM threads t;
