-- How the source documents' names are written: what another program says of a conversation becomes rows of the log, as an
-- import would write them. The triggers run with the rights of who writes. Each locks the thread's row first, and only then
-- looks: a function that is volatile reads in each statement what was committed before it.

-- A time as it is stored. Raises for one that no text of four digits for the year can tell.
CREATE OR REPLACE FUNCTION stored_time(given TIMESTAMPTZ) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF given < '0001-01-01 00:00:00+00' OR given >= '10000-01-01 00:00:00+00' THEN
        RAISE EXCEPTION 'a time is in the years 0001 to 9999, not %', given USING ERRCODE = 'check_violation';
    END IF;
    RETURN to_char(given AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"');
END
$$;

CREATE OR REPLACE FUNCTION title_of(question TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE
RETURN nullif(left(btrim(regexp_replace(
    question, '[\s\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+', ' ', 'g')), 50), '');

CREATE OR REPLACE FUNCTION text_list(given JSONB) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN given IS NULL OR jsonb_typeof(given) = 'array'
        AND NOT EXISTS (SELECT 1 FROM jsonb_array_elements(given) AS j WHERE jsonb_typeof(j) <> 'string');
END
$$;

-- The last run of a thread, and how it stands.
CREATE OR REPLACE FUNCTION last_run(thread TEXT) RETURNS TEXT LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN (SELECT r.id || ' ' || CASE WHEN r.status = 'running' AND r.waiting_since IS NOT NULL THEN 'waiting' ELSE r.status END
            FROM runs r WHERE r.thread_id = thread ORDER BY r.id DESC LIMIT 1);
END
$$;

-- Locks a thread; raises if there is none, or if a run is being executed on it.
CREATE OR REPLACE FUNCTION thread_to_write(thread TEXT, named TEXT) RETURNS threads LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
DECLARE
    locked threads;
BEGIN
    SELECT * INTO locked FROM threads WHERE id = thread FOR NO KEY UPDATE;
    IF locked.id IS NULL THEN
        RAISE EXCEPTION '% names no conversation: INSERT it first', named USING ERRCODE = 'foreign_key_violation';
    END IF;
    IF EXISTS (SELECT 1 FROM runs WHERE thread_id = thread AND status = 'running') THEN
        RAISE EXCEPTION 'a run is being executed on conversation %: write when it has ended', thread
            USING ERRCODE = 'object_in_use';
    END IF;
    RETURN locked;
END
$$;

CREATE OR REPLACE FUNCTION entry_seq(thread TEXT, entry TEXT) RETURNS BIGINT LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT AS $$
BEGIN
    RETURN (SELECT e.seq FROM entries e
            WHERE e.thread_id || ' ' || e.id = thread || ' ' || entry AND e.thread_id || '' = thread AND e.id = entry);
END
$$;

-- Raises for what a documented check or key refuses.
CREATE OR REPLACE FUNCTION refuse_unless(holds BOOLEAN, kind TEXT, reason TEXT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    IF holds IS NOT TRUE THEN
        RAISE EXCEPTION '%', reason USING ERRCODE = kind;
    END IF;
END
$$;

-- A client's or another program's calls as an entry has them; NULL for none. Raises for one that is no call.
CREATE OR REPLACE FUNCTION stored_calls(calls JSON) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE SET search_path FROM CURRENT AS $$
DECLARE
    given JSON;
    place BIGINT;
    args TEXT;
    name TEXT;
    found TEXT[] := '{}';
BEGIN
    IF calls IS NULL OR json_typeof(calls) = 'null' THEN
        RETURN NULL;
    END IF;
    PERFORM refuse_unless(json_typeof(calls) = 'array', 'check_violation', 'messages.tool_calls is a list of calls');
    FOR given, place IN SELECT value, ordinality - 1 FROM json_array_elements(calls) WITH ORDINALITY LOOP
        PERFORM refuse_unless(json_typeof(given) = 'object', 'check_violation', 'a call in messages.tool_calls is an object');
        name := coalesce(given -> 'function' ->> 'name', given ->> 'name');
        PERFORM refuse_unless(name IS NOT NULL, 'check_violation', 'a call in messages.tool_calls has no name');
        args := btrim(coalesce(given -> 'function' ->> 'arguments', given ->> 'arguments', given ->> 'args', given ->> 'input', '{}'));
        args := CASE args WHEN '' THEN '{}' ELSE args END;
        PERFORM refuse_unless(json_typeof(json_of(args)) = 'object', 'check_violation',
                              'the arguments of a call in messages.tool_calls are no JSON object');
        found := found || ('{"id":' || to_json(coalesce(given ->> 'id', 'call_' || place)) || ',"name":' || to_json(name)
                           || ',"args":' || json_of(args) || '}');
    END LOOP;
    RETURN '[' || nullif(array_to_string(found, ','), '') || ']';
END
$$;

-- The visible text of a message's or a block's content.
CREATE OR REPLACE FUNCTION content_text(content JSON) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN coalesce(CASE json_typeof(content) WHEN 'string' THEN content #>> '{}' WHEN 'array' THEN (
        SELECT string_agg(CASE json_typeof(b) WHEN 'string' THEN b #>> '{}' WHEN 'object' THEN
                   CASE WHEN coalesce(b ->> 'type', 'text') = 'text' THEN b ->> 'text' END END, '' ORDER BY place)
        FROM json_array_elements(content) WITH ORDINALITY AS c (b, place)) END, '');
END
$$;

-- Document 002: sessions.

CREATE OR REPLACE FUNCTION write_session() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    analyst CONSTANT TEXT := '6c6f6e67-7468-5265-8164-616e616c7973';
    started TIMESTAMPTZ;
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM thread_activity WHERE thread_id = OLD.id;
        RETURN OLD;
    END IF;
    NEW.status := CASE WHEN TG_OP = 'INSERT' THEN coalesce(NEW.status, 'active') ELSE NEW.status END;
    NEW.metadata := coalesce(NEW.metadata, '{}');
    PERFORM refuse_unless(NEW.status IN ('active', 'paused', 'completed', 'failed'), 'check_violation',
                          'sessions.status is active, paused, completed or failed');
    PERFORM refuse_unless(jsonb_typeof(NEW.metadata) = 'object', 'check_violation', 'sessions.metadata is a JSON object');
    IF TG_OP = 'INSERT' OR NEW.agent_id IS DISTINCT FROM OLD.agent_id THEN
        PERFORM refuse_unless(NEW.agent_id IS NULL OR NEW.agent_id = analyst
                              OR EXISTS (SELECT 1 FROM agents a WHERE CAST(a.id AS TEXT) = NEW.agent_id),
                              'foreign_key_violation', 'sessions.agent_id names no agent; NULL is the analyst');
    END IF;
    IF TG_OP = 'INSERT' THEN
        PERFORM refuse_unless(NEW.user_id IS NOT NULL, 'not_null_violation',
                              'sessions.user_id: name the user whose session it is');
        NEW.id := coalesce(NEW.id, CAST(gen_random_uuid() AS TEXT));
        started := coalesce(NEW.started_at, NEW.created_at, now());
        NEW.created_at := coalesce(NEW.created_at, started);
        IF started <> NEW.created_at THEN
            NEW.metadata := jsonb_build_object('started_at', stored_time(started)) || NEW.metadata;
        END IF;
        NEW.started_at := NEW.created_at;
        INSERT INTO threads (id, user_id, title, agent_id, status, metadata, ended_at, created_at, updated_at)
        VALUES (NEW.id, NEW.user_id, NEW.title, nullif(NEW.agent_id, analyst), NEW.status, NEW.metadata,
                stored_time(NEW.ended_at), stored_time(NEW.created_at), stored_time(NEW.created_at));
        RETURN NEW;
    END IF;
    PERFORM refuse_unless(
        NOT (NEW.id, NEW.user_id, NEW.started_at, NEW.created_at) IS DISTINCT FROM (OLD.id, OLD.user_id, OLD.started_at, OLD.created_at),
        'feature_not_supported',
        'sessions: id, user_id, started_at and created_at do not change; export the session and import it for another user');
    PERFORM 1 FROM threads WHERE id = OLD.id FOR NO KEY UPDATE;
    UPDATE threads SET title = NEW.title, metadata = NEW.metadata, agent_id = nullif(NEW.agent_id, analyst)
    WHERE id = OLD.id AND (NEW.title, NEW.metadata, NEW.agent_id) IS DISTINCT FROM (OLD.title, OLD.metadata, OLD.agent_id);
    -- It holds until the last run is another one, or stands otherwise.
    IF (NEW.status, NEW.ended_at) IS DISTINCT FROM (OLD.status, OLD.ended_at) THEN
        IF NEW.ended_at IS NOT DISTINCT FROM OLD.ended_at AND NEW.status <> OLD.status THEN
            NEW.ended_at := CASE WHEN NEW.status IN ('completed', 'failed') THEN now() END;
        END IF;
        UPDATE threads SET status = NEW.status, status_after = last_run(OLD.id), ended_at = stored_time(NEW.ended_at)
        WHERE id = OLD.id;
    END IF;
    RETURN NEW;
END
$$;

-- Document 002: messages.

CREATE OR REPLACE FUNCTION write_message() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    thread threads;
    parent BIGINT;
    calls TEXT;
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM refuse_unless(FALSE, 'feature_not_supported', 'messages: the log is only added to. DELETE the session, or '
            'write what should hold instead as a new message');
    END IF;
    NEW.metadata := coalesce(NEW.metadata, '{}');
    PERFORM refuse_unless(jsonb_typeof(NEW.metadata) = 'object', 'check_violation', 'messages.metadata is a JSON object');
    IF TG_OP = 'UPDATE' THEN
        PERFORM refuse_unless(
            NOT (NEW.id, NEW.session_id, NEW.parent_id, NEW.role, NEW.content, NEW.tool_calls, NEW.tool_call_id,
                 NEW.tokens_used, NEW.latency_ms, NEW.created_at)
            IS DISTINCT FROM (OLD.id, OLD.session_id, OLD.parent_id, OLD.role, OLD.content, OLD.tool_calls, OLD.tool_call_id,
                              OLD.tokens_used, OLD.latency_ms, OLD.created_at),
            'feature_not_supported', 'messages: a message does not change, but for its metadata; INSERT another one with the '
            'same parent_id, which begins a branch');
        PERFORM 1 FROM threads WHERE id = OLD.session_id FOR NO KEY UPDATE;
        IF NEW.metadata <> OLD.metadata THEN
            INSERT INTO message_metadata (thread_id, seq, data)
            VALUES (OLD.session_id, entry_seq(OLD.session_id, OLD.id), NEW.metadata)
            ON CONFLICT (thread_id, seq) DO UPDATE SET data = excluded.data;
        END IF;
        RETURN NEW;
    END IF;
    thread := thread_to_write(NEW.session_id, 'messages.session_id');
    NEW.id := coalesce(NEW.id, CAST(gen_random_uuid() AS TEXT));
    NEW.created_at := coalesce(NEW.created_at, now());
    PERFORM refuse_unless(NEW.role IN ('system', 'user', 'assistant', 'tool'), 'check_violation',
                          'messages.role is system, user, assistant or tool');
    PERFORM refuse_unless(NEW.content IS NOT NULL, 'not_null_violation', 'messages.content is missing');
    PERFORM refuse_unless(entry_seq(thread.id, NEW.id) IS NULL, 'unique_violation',
                          'messages.id: the session has a message with this id; messages do not change');
    parent := CASE WHEN NEW.parent_id IS NULL THEN thread.tip ELSE entry_seq(thread.id, NEW.parent_id) END;
    PERFORM refuse_unless(parent IS NOT NULL, 'foreign_key_violation',
                          'messages.parent_id names no message of this session; NULL follows the last one');
    calls := stored_calls(CAST(NEW.tool_calls AS JSON));
    PERFORM refuse_unless(calls IS NULL OR NEW.role = 'assistant', 'check_violation',
                          'messages.tool_calls is of an assistant''s message');
    PERFORM refuse_unless(NEW.tool_call_id IS NULL OR NEW.role = 'tool', 'check_violation',
                          'messages.tool_call_id is of a tool''s message');
    INSERT INTO entries (thread_id, seq, parent_seq, id, role, text, tool_calls, tool_call_id, tokens, latency_ms, created_at)
    VALUES (thread.id, thread.entry_count + 1, parent, NEW.id, NEW.role, NEW.content, calls,
            CASE WHEN NEW.role = 'tool' THEN coalesce(NEW.tool_call_id, '') END, NEW.tokens_used, NEW.latency_ms,
            stored_time(NEW.created_at));
    IF NEW.metadata <> '{}' THEN
        INSERT INTO message_metadata (thread_id, seq, data) VALUES (thread.id, thread.entry_count + 1, NEW.metadata);
    END IF;
    UPDATE threads
    SET tip = entry_count + 1, entry_count = entry_count + 1, updated_at = greatest(updated_at, stored_time(NEW.created_at)),
        title = CASE WHEN NEW.role = 'user' THEN coalesce(title, title_of(NEW.content)) ELSE title END
    WHERE id = thread.id;
    RETURN NEW;
END
$$;

-- Document 000: conversations and their steps.

CREATE OR REPLACE FUNCTION write_conversation() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    message JSON;
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM thread_activity WHERE thread_id = OLD.thread_id;
        RETURN OLD;
    END IF;
    PERFORM refuse_unless(text_list(NEW.tool_categories) AND text_list(NEW.tags), 'check_violation',
                          'conversations.tool_categories and tags are JSON lists of texts');
    IF TG_OP = 'UPDATE' THEN
        PERFORM refuse_unless(
            NOT (NEW.thread_id, NEW.user_id, NEW.created_at) IS DISTINCT FROM (OLD.thread_id, OLD.user_id, OLD.created_at),
            'feature_not_supported', 'conversations: thread_id, user_id and created_at do not change; export the '
            'conversation and import it for another user');
        PERFORM refuse_unless(
            NOT (CAST(NEW.state_data AS TEXT), NEW.tool_categories) IS DISTINCT FROM (CAST(OLD.state_data AS TEXT), OLD.tool_categories),
            'feature_not_supported', 'conversations: state_data and tool_categories are computed from what happened; INSERT '
            'messages, or conversation_steps');
        UPDATE thread_activity SET label = NEW.title, last_active_at = NEW.updated_at WHERE thread_id = OLD.thread_id;
        UPDATE threads SET tags = coalesce(NEW.tags, '[]') WHERE id = OLD.thread_id AND NEW.tags IS DISTINCT FROM OLD.tags;
        RETURN NEW;
    END IF;
    PERFORM refuse_unless(NEW.state_data IS NULL OR json_typeof(NEW.state_data) = 'object', 'check_violation',
                          'conversations.state_data is a JSON object');
    PERFORM refuse_unless(NOT EXISTS (
        SELECT 1 FROM json_each(NEW.state_data) s
        WHERE s.key NOT IN ('question', 'messages', 'max_steps')
          AND CAST(s.value AS TEXT) NOT IN ('null', 'false', '[]', '{}', '""', '0')
    ) AND NOT EXISTS (
        SELECT 1 FROM json_array_elements(coalesce(json_extract_path(NEW.state_data, 'messages'), '[]')) AS m
        WHERE json_typeof(m) <> 'object' OR json_typeof(m -> 'content') IS DISTINCT FROM 'string'
    ), 'feature_not_supported', 'conversations.state_data is computed: of a new conversation it may hold messages, as '
       '{"role", "content"} with texts. INSERT its steps into conversation_steps, or read such a database by `longthread import`');
    NEW.thread_id := coalesce(NEW.thread_id, CAST(gen_random_uuid() AS TEXT));
    NEW.user_id := coalesce(NEW.user_id, 'default');
    NEW.created_at := coalesce(NEW.created_at, now());
    NEW.updated_at := coalesce(NEW.updated_at, NEW.created_at);
    INSERT INTO threads (id, user_id, title, tool_categories, tags, created_at, updated_at)
    VALUES (NEW.thread_id, NEW.user_id, NEW.title, coalesce(NEW.tool_categories, '[]'), coalesce(NEW.tags, '[]'),
            stored_time(NEW.created_at), stored_time(NEW.updated_at));
    FOR message IN SELECT json_array_elements(coalesce(json_extract_path(NEW.state_data, 'messages'), '[]')) LOOP
        INSERT INTO messages (session_id, role, content, created_at)
        VALUES (NEW.thread_id, message ->> 'role', message ->> 'content',
                coalesce(CAST(message ->> 'timestamp' AS TIMESTAMPTZ), NEW.updated_at));
    END LOOP;
    RETURN NEW;
END
$$;

-- A step is a call with its result; the last one, `finish`, is the answer. The result keeps the step as it was said.
CREATE OR REPLACE FUNCTION write_step() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    thread threads;
    at TEXT;
    call TEXT;
    action TEXT;
    observation JSON;
BEGIN
    PERFORM refuse_unless(TG_OP <> 'UPDATE', 'feature_not_supported',
                          'conversation_steps: a step does not change: the log is only added to');
    PERFORM refuse_unless(TG_OP <> 'DELETE', 'feature_not_supported',
                          'conversation_steps: the log is only added to. DELETE the conversation: its steps go with it');
    thread := thread_to_write(NEW.thread_id, 'conversation_steps.thread_id');
    action := NEW.step_data ->> 'action';
    PERFORM refuse_unless(NEW.id IS NULL, 'check_violation', 'conversation_steps.id is computed: leave it out');
    PERFORM refuse_unless(json_typeof(NEW.step_data -> 'action') = 'string', 'check_violation',
                          'conversation_steps.step_data is a JSON object with `action`');
    PERFORM refuse_unless(NEW.step_index = (SELECT count(*) FROM conversation_steps WHERE thread_id = NEW.thread_id),
                          'check_violation', 'conversation_steps.step_index is the number of steps before this one');
    at := stored_time(coalesce(NEW.created_at, CAST(NEW.step_data ->> 'timestamp' AS TIMESTAMPTZ), now()));
    IF action = 'finish' THEN
        INSERT INTO entries (thread_id, seq, parent_seq, id, role, text, metadata, created_at)
        VALUES (thread.id, thread.entry_count + 1, thread.tip, gen_random_uuid(), 'assistant',
                coalesce(NEW.step_data ->> 'content', ''),
                '{"kind":"answer","imported_step":' || NEW.step_data || '}', at);
    ELSE
        call := 'step_' || (thread.entry_count + 1);
        observation := NEW.step_data -> 'observation';
        INSERT INTO entries (thread_id, seq, parent_seq, id, role, text, tool_calls, created_at)
        VALUES (thread.id, thread.entry_count + 1, thread.tip, gen_random_uuid(), 'assistant',
                coalesce(NEW.step_data ->> 'thought', ''),
                '[{"id":' || to_json(call) || ',"name":' || to_json(left(action, 64)) || ',"args":'
                || CASE json_typeof(NEW.step_data -> 'args') WHEN 'object' THEN NEW.step_data -> 'args' ELSE '{}' END || '}]', at);
        INSERT INTO entries (thread_id, seq, parent_seq, id, role, text, tool_call_id, name, metadata, created_at)
        VALUES (thread.id, thread.entry_count + 2, thread.entry_count + 1, gen_random_uuid(), 'tool',
                CASE WHEN json_typeof(observation) IN ('object', 'array', 'string') THEN CAST(observation AS TEXT)
                     ELSE coalesce(NEW.step_data ->> 'content', '') END,
                call, left(action, 64), '{"imported_step":' || NEW.step_data || '}', at);
    END IF;
    UPDATE threads
    SET (tip, entry_count) = (SELECT max(e.seq), max(e.seq) FROM entries e WHERE e.thread_id = thread.id),
        updated_at = greatest(updated_at, at)
    WHERE id = thread.id;
    RETURN NEW;
END
$$;

-- Document 003: conversation states. Storing one again is an update of it, as the document says.

-- The last entry of each message of a thread's active branch.
CREATE OR REPLACE VIEW state_ends AS
SELECT t.id AS thread_id, s.place, s.seq FROM threads t CROSS JOIN LATERAL (
    WITH RECURSIVE
    branch (seq, parent_seq, replaces) AS (
        SELECT e.seq, e.parent_seq, e.replaces FROM entries e
        WHERE e.thread_id = t.id AND e.seq = t.tip AND e.seq >= t.first_seq
        UNION ALL
        SELECT e.seq, e.parent_seq, e.replaces FROM branch b
        JOIN entries e ON e.thread_id = t.id AND e.seq = b.parent_seq
        WHERE b.parent_seq >= t.first_seq
    ),
    placed (seq, version) AS (
        SELECT coalesce(replaces, seq), max(seq) FROM branch GROUP BY coalesce(replaces, seq)
    ),
    line AS (
        SELECT p.seq, json_of(CASE WHEN substr(e.payload, 1, 1) = '\x7B' THEN text_of(e.payload) END) AS payload
        FROM placed p JOIN entries e ON e.thread_id = t.id AND e.seq = p.version
        WHERE p.seq >= t.first_seq
    ),
    counted AS (
        SELECT seq, count(*) FILTER (
            WHERE CASE json_typeof(payload -> 'client_messages') WHEN 'array'
                       THEN json_array_length(payload -> 'client_messages') END IS DISTINCT FROM 0
               OR seq = (SELECT min(b.seq) FROM branch b)) OVER (ORDER BY seq) AS message
        FROM line
    )
    SELECT message - 1 AS place, max(seq) AS seq FROM counted GROUP BY message
) s;

-- The entries of a client's message. Results of calls stand in a user's message where a client speaks Anthropic's dialect.
CREATE OR REPLACE FUNCTION message_parts(message JSON)
RETURNS TABLE (role TEXT, text TEXT, calls TEXT, call_id TEXT, name TEXT, content JSON, is_whole BOOLEAN)
LANGUAGE plpgsql IMMUTABLE SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    said CONSTANT TEXT := message ->> 'role';
    given CONSTANT JSON := message -> 'content';
    is_list CONSTANT BOOLEAN := coalesce(json_typeof(given) = 'array', FALSE);
    results BIGINT := 0;
BEGIN
    IF said = 'user' AND is_list THEN
        RETURN QUERY
        SELECT 'tool', content_text(b -> 'content'), CAST(NULL AS TEXT), coalesce(b ->> 'tool_use_id', ''),
               CAST(NULL AS TEXT), CAST(NULL AS JSON), FALSE
        FROM json_array_elements(given) WITH ORDINALITY AS c (b, place)
        WHERE json_typeof(b) = 'object' AND b ->> 'type' = 'tool_result' ORDER BY place;
        GET DIAGNOSTICS results = ROW_COUNT;
    END IF;
    IF results > 0 AND results = json_array_length(given) THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT said, content_text(given), CASE said WHEN 'assistant' THEN (
               SELECT stored_calls(json_agg(c ORDER BY place)) FROM (
                   SELECT c, place FROM json_array_elements(
                       CASE WHEN json_typeof(message -> 'tool_calls') = 'array' AND json_array_length(message -> 'tool_calls') > 0
                            THEN message -> 'tool_calls' WHEN is_list THEN given END) WITH ORDINALITY AS l (c, place)
                   WHERE json_typeof(c) = 'object' AND (c -> 'function' IS NOT NULL OR c ->> 'type' = 'tool_use')
                     AND coalesce(c -> 'function' ->> 'name', c ->> 'name') IS NOT NULL
                     AND json_typeof(json_of(coalesce(c -> 'function' ->> 'arguments', c ->> 'input', '{}'))) = 'object') x) END,
           CASE said WHEN 'tool' THEN coalesce(message ->> 'tool_call_id', '') END,
           CASE json_typeof(message -> 'name') WHEN 'string' THEN message ->> 'name' END,
           CASE WHEN is_list THEN given END,
           coalesce(json_typeof(given) = 'string', FALSE) AND NOT EXISTS (
               SELECT 1 FROM json_each(message) k WHERE k.key NOT IN ('role', 'content')
                 AND NOT (k.key = 'name' AND json_typeof(k.value) = 'string')
                 AND NOT (k.key = 'tool_call_id' AND json_typeof(k.value) = 'string' AND said = 'tool'));
END
$$;

CREATE OR REPLACE FUNCTION write_state() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    thread threads;
    owner TEXT;
    kept BIGINT;
    message JSON;
    part RECORD;
    is_first BOOLEAN;
    at TEXT;
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM thread_activity WHERE thread_id = OLD.scid;
        RETURN OLD;
    END IF;
    IF TG_OP = 'INSERT' THEN
        PERFORM refuse_unless(NEW.id IS NULL, 'check_violation',
                              'conversation_state.id is the conversation''s number in this database: leave it out');
        PERFORM refuse_unless(NOT (NEW.scid IS NULL OR NEW.client_type IS NULL OR NEW.authoritative_history IS NULL),
                              'not_null_violation', 'conversation_state.scid, client_type and authoritative_history are needed');
        NEW.created_at := coalesce(NEW.created_at, now());
        NEW.updated_at := coalesce(NEW.updated_at, now());
        INSERT INTO threads (id, created_at, updated_at)
        VALUES (NEW.scid, stored_time(NEW.created_at), stored_time(NEW.created_at)) ON CONFLICT (id) DO NOTHING;
        SELECT user_id INTO owner FROM threads WHERE id = NEW.scid FOR NO KEY UPDATE;
        PERFORM refuse_unless(owner = 'default', 'unique_violation',
                              'conversation_state.scid: it is another user''s conversation');
        UPDATE conversation_state
        SET client_type = NEW.client_type, authoritative_history = NEW.authoritative_history,
            last_signature = NEW.last_signature, expires_at = NEW.expires_at, updated_at = NEW.updated_at,
            access_count = coalesce(NEW.access_count, access_count)
        WHERE scid = NEW.scid;
        RETURN NEW;
    END IF;
    PERFORM refuse_unless(NOT (NEW.id, NEW.scid, NEW.created_at) IS DISTINCT FROM (OLD.id, OLD.scid, OLD.created_at),
                          'feature_not_supported', 'conversation_state: id, scid and created_at do not change');
    PERFORM refuse_unless(NEW.client_type IN ('cursor', 'augment', 'claude_code', 'unknown'), 'check_violation',
                          'conversation_state.client_type is cursor, augment, claude_code or unknown');
    PERFORM refuse_unless(json_typeof(NEW.authoritative_history) = 'array', 'check_violation',
                          'conversation_state.authoritative_history is a JSON list of messages');
    PERFORM refuse_unless(NOT EXISTS (
        SELECT 1 FROM json_array_elements(NEW.authoritative_history) AS m
        WHERE json_typeof(m) <> 'object' OR coalesce(m ->> 'role', '') NOT IN ('system', 'user', 'assistant', 'tool')
    ), 'check_violation', 'a message of conversation_state.authoritative_history has the role system, user, assistant or tool');
    PERFORM refuse_unless(NEW.access_count IS NOT NULL AND NEW.updated_at IS NOT NULL, 'not_null_violation',
                          'conversation_state.access_count and updated_at are needed');
    at := stored_time(coalesce(nullif(NEW.updated_at, OLD.updated_at), now()));
    IF CAST(NEW.authoritative_history AS TEXT) <> CAST(OLD.authoritative_history AS TEXT) THEN
        thread := thread_to_write(OLD.scid, 'conversation_state.scid');
        -- The messages that are there already stay; what follows the last of them begins a branch, if anything stood there.
        SELECT coalesce(min(place), json_array_length(OLD.authoritative_history)) INTO kept FROM (
            SELECT o.place - 1 AS place FROM json_array_elements(OLD.authoritative_history) WITH ORDINALITY AS o (m, place)
            LEFT JOIN json_array_elements(NEW.authoritative_history) WITH ORDINALITY AS n (m, place) USING (place)
            WHERE CAST(json_of(CAST(o.m AS TEXT)) AS JSONB) IS DISTINCT FROM CAST(json_of(CAST(n.m AS TEXT)) AS JSONB)
        ) differing;
        IF kept < json_array_length(OLD.authoritative_history) THEN
            thread.tip := coalesce((
                SELECT s.seq FROM state_ends s WHERE s.thread_id = OLD.scid AND s.place = kept - 1), 0);
        END IF;
        FOR message IN SELECT m FROM json_array_elements(NEW.authoritative_history) WITH ORDINALITY AS n (m, place)
                       WHERE place > kept ORDER BY place LOOP
            is_first := TRUE;
            FOR part IN SELECT * FROM message_parts(message) LOOP
                INSERT INTO entries (thread_id, seq, parent_seq, id, role, text, tool_calls, tool_call_id, name, payload, created_at)
                VALUES (OLD.scid, thread.entry_count + 1, thread.tip, gen_random_uuid(), part.role, part.text, part.calls,
                        part.call_id, part.name, CASE WHEN NOT part.is_whole THEN convert_to(
                            CASE WHEN is_first THEN '{' || coalesce('"content":' || part.content || ',', '')
                                                    || '"client_messages":[' || message || ']}'
                                 ELSE '{"client_messages":[]}' END, 'UTF8') END, at);
                thread.entry_count := thread.entry_count + 1;
                thread.tip := thread.entry_count;
                is_first := FALSE;
            END LOOP;
        END LOOP;
        UPDATE threads SET tip = thread.tip, entry_count = thread.entry_count,
            title = coalesce(title, (SELECT title_of(e.text) FROM entries e WHERE e.thread_id = OLD.scid AND e.role = 'user'
                                     ORDER BY e.seq LIMIT 1))
        WHERE id = OLD.scid;
    END IF;
    UPDATE threads SET updated_at = at, expires_at = stored_time(NEW.expires_at) WHERE id = OLD.scid;
    INSERT INTO thread_clients AS c (thread_id, client_type, last_signature, access_count)
    VALUES (OLD.scid, NEW.client_type, NEW.last_signature, NEW.access_count)
    ON CONFLICT (thread_id) DO UPDATE SET client_type = excluded.client_type, last_signature = excluded.last_signature,
                                          access_count = excluded.access_count;
    RETURN NEW;
END
$$;

-- Document 004: the activity of threads. What deletes a conversation by another name comes here.

CREATE OR REPLACE FUNCTION write_activity() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM 1 FROM threads WHERE id = OLD.thread_id FOR UPDATE;
        PERFORM refuse_unless(NOT EXISTS (
            SELECT 1 FROM runs r JOIN workers w ON w.id = r.owner
            WHERE r.thread_id = OLD.thread_id AND r.status = 'running' AND r.waiting_since IS NULL
        ), 'object_in_use', 'a run is being executed on this conversation: stop it, or delete when it has ended');
        DELETE FROM threads WHERE id = OLD.thread_id;
        RETURN OLD;
    END IF;
    IF TG_OP = 'INSERT' THEN
        PERFORM refuse_unless(NEW.thread_id IS NOT NULL, 'not_null_violation', 'thread_activity.thread_id is missing');
        NEW.last_active_at := coalesce(NEW.last_active_at, now());
        INSERT INTO threads (id, title, created_at, updated_at)
        VALUES (NEW.thread_id, NEW.label, stored_time(NEW.last_active_at), stored_time(NEW.last_active_at));
        RETURN NEW;
    END IF;
    PERFORM refuse_unless(NEW.thread_id IS NOT DISTINCT FROM OLD.thread_id, 'feature_not_supported',
                          'thread_activity: thread_id does not change');
    PERFORM refuse_unless(NEW.last_active_at IS NOT NULL, 'not_null_violation', 'thread_activity.last_active_at is missing');
    UPDATE threads SET title = NEW.label WHERE id = OLD.thread_id AND NEW.label IS DISTINCT FROM OLD.label;
    UPDATE threads SET updated_at = stored_time(NEW.last_active_at)
    WHERE id = OLD.thread_id AND NEW.last_active_at <> OLD.last_active_at;
    RETURN NEW;
END
$$;

CREATE OR REPLACE TRIGGER written INSTEAD OF INSERT OR UPDATE OR DELETE ON conversations
    FOR EACH ROW EXECUTE FUNCTION write_conversation();
CREATE OR REPLACE TRIGGER written INSTEAD OF INSERT OR UPDATE OR DELETE ON conversation_steps
    FOR EACH ROW EXECUTE FUNCTION write_step();
CREATE OR REPLACE TRIGGER written INSTEAD OF INSERT OR UPDATE OR DELETE ON sessions
    FOR EACH ROW EXECUTE FUNCTION write_session();
CREATE OR REPLACE TRIGGER written INSTEAD OF INSERT OR UPDATE OR DELETE ON messages
    FOR EACH ROW EXECUTE FUNCTION write_message();
CREATE OR REPLACE TRIGGER written INSTEAD OF INSERT OR UPDATE OR DELETE ON conversation_state
    FOR EACH ROW EXECUTE FUNCTION write_state();
CREATE OR REPLACE TRIGGER written INSTEAD OF INSERT OR UPDATE OR DELETE ON thread_activity
    FOR EACH ROW EXECUTE FUNCTION write_activity();

-- What is written to the tables of the documents beside the views.

-- A chunk of another program's becomes an entry on a branch of its own, which recall finds, unless a message has its lines, or
-- a longer chunk as a part that neither begins nor ends inside a word. The row keeps the vector; a vector of Longthread's knows its entry.
CREATE OR REPLACE FUNCTION keep_chunk() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    place BIGINT;
    at TEXT := stored_time(coalesce(NEW.created_at, now()));
    said TEXT := btrim(replace(NEW.chunk, E'\r', ''), E' \t\n\x0B\f');
BEGIN
    SELECT entry_count + 1 INTO place FROM threads WHERE id = NEW.thread_id FOR NO KEY UPDATE;
    NEW.model := 'imported';
    IF place IS NULL OR said = '' OR EXISTS (
        SELECT 1 FROM (
            SELECT E'\n' || replace(e.text, E'\r', '') || E'\n' AS text FROM entries e WHERE e.thread_id = NEW.thread_id
        ) AS each WHERE position(E'\n' || said || E'\n' IN text) > 0
             OR length(said) >= 12 AND position(said IN text) > 0
                AND substr(text, position(said IN text) - 1, 1) !~ '[0-9A-Za-z_]'
                AND substr(text, position(said IN text) + length(said), 1) !~ '[0-9A-Za-z_]'
    ) THEN
        RETURN NEW;
    END IF;
    INSERT INTO entries (thread_id, seq, parent_seq, id, role, text, metadata, created_at)
    VALUES (NEW.thread_id, place, 0, gen_random_uuid(), 'system', NEW.chunk, '{"kind":"chunk"}', at);
    INSERT INTO memory_topic_spans (thread_id, topic, first_seq, last_seq, mentions, seen_at)
    SELECT DISTINCT NEW.thread_id, n, place, place, 1, at FROM unnest(NEW.topics) AS n;
    UPDATE threads SET entry_count = place WHERE id = NEW.thread_id;
    RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER memory_chunk BEFORE INSERT ON memory_vectors
    FOR EACH ROW WHEN (NEW.seq IS NULL AND NEW.model IS NULL) EXECUTE FUNCTION keep_chunk();

-- A summary that another program or a person changed is kept as it is: the next pass adds to it.
CREATE OR REPLACE FUNCTION keep_summary() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    NEW.model := 'written';
    NEW.digest := CAST(CAST(json_of(NEW.digest) AS JSONB) - ARRAY['written', 'since', 'unwritten'] AS TEXT);
    RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER summary_written BEFORE UPDATE OF summary ON conversation_summaries
    FOR EACH ROW WHEN (
        NEW.summary <> OLD.summary AND NEW.config_hash IS NOT DISTINCT FROM OLD.config_hash
        AND NEW.digest IS NOT DISTINCT FROM OLD.digest AND NEW.last_seq IS NOT DISTINCT FROM OLD.last_seq
        AND NEW.model IS NOT DISTINCT FROM OLD.model
    ) EXECUTE FUNCTION keep_summary();
