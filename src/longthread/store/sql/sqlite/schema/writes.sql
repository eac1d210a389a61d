-- How the source documents' names are written: what another program says of a conversation becomes rows of the log, as an
-- import would write them. A connection of another program has only SQLite's own functions, and maybe no foreign keys.
-- A statement that writes holds the database's lock before it reads anything.
--
-- Words in capitals before a bracket, such as STORED_TIME, stand for SQL (longthread.store.schema): SQLite's triggers have no
-- variables, and their messages are literals.

-- Document 002: sessions.

CREATE TRIGGER sessions_insert INSTEAD OF INSERT ON sessions
BEGIN
    SELECT RAISE(ABORT, 'CHECK constraint failed: sessions.id, user_id, title and agent_id are texts without NUL characters, not bytes or numbers')
    WHERE NOT IS_TEXT[NEW.id] OR NOT IS_TEXT[NEW.user_id] OR NOT IS_TEXT[NEW.title]
       OR NOT IS_TEXT[NEW.agent_id];
    SELECT RAISE(ABORT, 'NOT NULL constraint failed: sessions.user_id: name the user whose session it is')
    WHERE NEW.user_id IS NULL;
    SELECT RAISE(ABORT, 'UNIQUE constraint failed: sessions.id: there is a conversation with this id; UPDATE it')
    WHERE EXISTS (SELECT 1 FROM threads WHERE id = NEW.id);
    SELECT RAISE(ABORT, 'CHECK constraint failed: sessions.status is active, paused, completed or failed')
    WHERE coalesce(NEW.status, 'active') NOT IN ('active', 'paused', 'completed', 'failed');
    SELECT RAISE(ABORT, 'FOREIGN KEY constraint failed: sessions.agent_id names no agent; NULL is the analyst')
    WHERE NEW.agent_id IS NOT NULL AND NEW.agent_id <> ANALYST[]
      AND NOT EXISTS (SELECT 1 FROM agents WHERE id = NEW.agent_id);
    SELECT RAISE(ABORT, 'CHECK constraint failed: sessions.metadata is a JSON object')
    WHERE NEW.metadata IS NOT NULL
      AND CASE WHEN json_valid(NEW.metadata) THEN json_type(NEW.metadata) <> 'object' ELSE TRUE END;
    SELECT RAISE(ABORT, 'CHECK constraint failed: a time of sessions is no ISO 8601 time')
    WHERE NEW.created_at IS NOT NULL AND STORED_TIME[NEW.created_at] IS NULL
       OR NEW.started_at IS NOT NULL AND STORED_TIME[NEW.started_at] IS NULL
       OR NEW.ended_at IS NOT NULL AND STORED_TIME[NEW.ended_at] IS NULL;
    INSERT INTO threads (id, user_id, title, agent_id, status, metadata, ended_at, created_at, updated_at)
    SELECT coalesce(NEW.id, RANDOM_UUID[]), NEW.user_id, NEW.title, nullif(NEW.agent_id, ANALYST[]),
           coalesce(NEW.status, 'active'),
           CASE WHEN started <> at THEN json_insert(coalesce(NEW.metadata, '{}'), '$.started_at', started)
                ELSE json(coalesce(NEW.metadata, '{}')) END,
           STORED_TIME[NEW.ended_at], at, at
    FROM (SELECT coalesce(STORED_TIME[NEW.created_at], STORED_TIME[NEW.started_at], NOW[]) AS at,
                 coalesce(STORED_TIME[NEW.started_at], STORED_TIME[NEW.created_at], NOW[]) AS started);
END;

CREATE TRIGGER sessions_update INSTEAD OF UPDATE ON sessions
BEGIN
    SELECT RAISE(ABORT, 'CHECK constraint failed: sessions.title and agent_id are texts without NUL characters, not bytes or numbers')
    WHERE NOT IS_TEXT[NEW.title] OR NOT IS_TEXT[NEW.agent_id];
    SELECT RAISE(ABORT, 'sessions: id, user_id, started_at and created_at do not change; export the session and import it for another user')
    WHERE NEW.id IS NOT OLD.id OR NEW.user_id IS NOT OLD.user_id OR NEW.started_at IS NOT OLD.started_at
       OR NEW.created_at IS NOT OLD.created_at;
    SELECT RAISE(ABORT, 'CHECK constraint failed: sessions.status is active, paused, completed or failed')
    WHERE coalesce(NEW.status, '') NOT IN ('active', 'paused', 'completed', 'failed');
    SELECT RAISE(ABORT, 'FOREIGN KEY constraint failed: sessions.agent_id names no agent; NULL is the analyst')
    WHERE NEW.agent_id IS NOT OLD.agent_id AND NEW.agent_id <> ANALYST[]
      AND NOT EXISTS (SELECT 1 FROM agents WHERE id = NEW.agent_id);
    SELECT RAISE(ABORT, 'CHECK constraint failed: sessions.metadata is a JSON object')
    WHERE CASE WHEN json_valid(NEW.metadata) THEN json_type(NEW.metadata) <> 'object' ELSE NEW.metadata IS NOT NULL END;
    SELECT RAISE(ABORT, 'CHECK constraint failed: sessions.ended_at is no ISO 8601 time')
    WHERE NEW.ended_at IS NOT NULL AND STORED_TIME[NEW.ended_at] IS NULL;
    UPDATE threads
    SET title = NEW.title, metadata = json(coalesce(NEW.metadata, '{}')), agent_id = nullif(NEW.agent_id, ANALYST[])
    WHERE id = OLD.id AND (NEW.title IS NOT OLD.title OR NEW.metadata IS NOT OLD.metadata OR NEW.agent_id IS NOT OLD.agent_id);
    -- It holds until the last run is another one, or stands otherwise.
    UPDATE threads
    SET status = NEW.status,
        status_after = LAST_RUN[OLD.id],
        ended_at = CASE WHEN NEW.ended_at IS NOT OLD.ended_at THEN STORED_TIME[NEW.ended_at]
                        WHEN NEW.status IN ('active', 'paused') THEN NULL
                        WHEN NEW.status = OLD.status THEN OLD.ended_at ELSE NOW[] END
    WHERE id = OLD.id AND (NEW.status IS NOT OLD.status OR NEW.ended_at IS NOT OLD.ended_at);
END;

CREATE TRIGGER sessions_delete INSTEAD OF DELETE ON sessions
BEGIN
    DELETE FROM thread_activity WHERE thread_id = OLD.id;
END;

-- Document 002: messages.

CREATE TRIGGER messages_insert INSTEAD OF INSERT ON messages
BEGIN
    SELECT RAISE(ABORT, 'CHECK constraint failed: messages.id, session_id, parent_id, content and tool_call_id are texts without NUL characters, not bytes or numbers')
    WHERE NOT IS_TEXT[NEW.id] OR NOT IS_TEXT[NEW.session_id] OR NOT IS_TEXT[NEW.parent_id]
       OR NOT IS_TEXT[NEW.content] OR NOT IS_TEXT[NEW.tool_call_id];
    SELECT RAISE(ABORT, 'FOREIGN KEY constraint failed: messages.session_id names no session; INSERT it first')
    WHERE NOT EXISTS (SELECT 1 FROM threads WHERE id = NEW.session_id);
    SELECT RAISE(ABORT, 'CHECK constraint failed: messages.role is system, user, assistant or tool')
    WHERE coalesce(NEW.role, '') NOT IN ('system', 'user', 'assistant', 'tool');
    SELECT RAISE(ABORT, 'NOT NULL constraint failed: messages.content') WHERE NEW.content IS NULL;
    SELECT RAISE(ABORT, 'a run is being executed on this session: write when it has ended')
    WHERE EXISTS (SELECT 1 FROM runs WHERE thread_id = NEW.session_id AND status = 'running');
    SELECT RAISE(ABORT, 'UNIQUE constraint failed: messages.id: the session has a message with this id; messages do not change')
    WHERE NEW.id IS NOT NULL AND ENTRY_SEQ[NEW.session_id; NEW.id] IS NOT NULL;
    SELECT RAISE(ABORT, 'FOREIGN KEY constraint failed: messages.parent_id names no message of this session; NULL follows the last one')
    WHERE NEW.parent_id IS NOT NULL AND ENTRY_SEQ[NEW.session_id; NEW.parent_id] IS NULL;
    SELECT RAISE(ABORT, 'CHECK constraint failed: messages.tool_calls is a list of calls, of an assistant''s message: [{"id", "type": "function", "function": {"name", "arguments"}}]')
    WHERE NEW.tool_calls IS NOT NULL AND CASE
        WHEN NOT json_valid(NEW.tool_calls) THEN TRUE
        WHEN json_type(NEW.tool_calls) = 'null' THEN FALSE
        ELSE json_type(NEW.tool_calls) <> 'array' OR NEW.role <> 'assistant' AND json_array_length(NEW.tool_calls) > 0
             OR EXISTS (SELECT 1 FROM json_each(NEW.tool_calls) c WHERE c.type <> 'object'
                        OR coalesce(json_type(c.value, '$.function.name'), json_type(c.value, '$.name'), '') <> 'text') END;
    SELECT RAISE(ABORT, 'CHECK constraint failed: the arguments of a call in messages.tool_calls are no JSON object')
    WHERE NEW.role = 'assistant' AND EXISTS (
        SELECT 1 FROM json_each(NEW.tool_calls) c
        WHERE CASE WHEN json_valid(CALL_ARGS[c.value]) THEN json_type(CALL_ARGS[c.value]) <> 'object' ELSE TRUE END);
    SELECT RAISE(ABORT, 'CHECK constraint failed: messages.tool_call_id is of a tool''s message')
    WHERE NEW.tool_call_id IS NOT NULL AND NEW.role <> 'tool';
    SELECT RAISE(ABORT, 'CHECK constraint failed: messages.metadata is a JSON object')
    WHERE NEW.metadata IS NOT NULL
      AND CASE WHEN json_valid(NEW.metadata) THEN json_type(NEW.metadata) <> 'object' ELSE TRUE END;
    SELECT RAISE(ABORT, 'CHECK constraint failed: messages.tokens_used and latency_ms are whole numbers')
    WHERE typeof(NEW.tokens_used) NOT IN ('null', 'integer') OR typeof(NEW.latency_ms) NOT IN ('null', 'integer');
    SELECT RAISE(ABORT, 'CHECK constraint failed: messages.created_at is no ISO 8601 time')
    WHERE NEW.created_at IS NOT NULL AND STORED_TIME[NEW.created_at] IS NULL;
    INSERT INTO entries (thread_id, seq, parent_seq, id, role, text, tool_calls, tool_call_id, tokens, latency_ms, created_at)
    SELECT t.id, t.entry_count + 1, CASE WHEN NEW.parent_id IS NULL THEN t.tip ELSE ENTRY_SEQ[NEW.session_id; NEW.parent_id] END,
           coalesce(NEW.id, RANDOM_UUID[]), NEW.role, NEW.content,
           CASE WHEN NEW.role = 'assistant' AND json_array_length(NEW.tool_calls) > 0 THEN (
               SELECT json_group_array(json_object(
                   'id', coalesce(json_extract(c.value, '$.id'), 'call_' || c.key),
                   'name', coalesce(json_extract(c.value, '$.function.name'), json_extract(c.value, '$.name')),
                   'args', json(CALL_ARGS[c.value])))
               FROM json_each(NEW.tool_calls) c) END,
           CASE WHEN NEW.role = 'tool' THEN coalesce(NEW.tool_call_id, '') END, NEW.tokens_used, NEW.latency_ms,
           coalesce(STORED_TIME[NEW.created_at], NOW[])
    FROM threads t WHERE t.id = NEW.session_id;
    INSERT INTO message_metadata (thread_id, seq, data)
    SELECT id, entry_count + 1, json(NEW.metadata) FROM threads
    WHERE id = NEW.session_id AND coalesce(json(NEW.metadata), '{}') <> '{}';
    UPDATE threads
    SET tip = entry_count + 1, entry_count = entry_count + 1,
        updated_at = max(updated_at, coalesce(STORED_TIME[NEW.created_at], NOW[])),
        title = CASE WHEN NEW.role = 'user' THEN coalesce(title, TITLE[NEW.content]) ELSE title END
    WHERE id = NEW.session_id;
END;

CREATE TRIGGER messages_update INSTEAD OF UPDATE ON messages
BEGIN
    SELECT RAISE(ABORT, 'messages: a message does not change, but for its metadata; INSERT another one with the same parent_id, which begins a branch')
    WHERE NEW.id IS NOT OLD.id OR NEW.session_id IS NOT OLD.session_id OR NEW.parent_id IS NOT OLD.parent_id
       OR NEW.role IS NOT OLD.role OR NEW.content IS NOT OLD.content OR NEW.tool_calls IS NOT OLD.tool_calls
       OR NEW.tool_call_id IS NOT OLD.tool_call_id OR NEW.tokens_used IS NOT OLD.tokens_used
       OR NEW.latency_ms IS NOT OLD.latency_ms OR NEW.created_at IS NOT OLD.created_at;
    SELECT RAISE(ABORT, 'CHECK constraint failed: messages.metadata is a JSON object')
    WHERE CASE WHEN json_valid(NEW.metadata) THEN json_type(NEW.metadata) <> 'object' ELSE TRUE END;
    INSERT OR REPLACE INTO message_metadata (thread_id, seq, data)
    SELECT OLD.session_id, ENTRY_SEQ[OLD.session_id; OLD.id], json(NEW.metadata) WHERE NEW.metadata IS NOT OLD.metadata;
END;

CREATE TRIGGER messages_delete INSTEAD OF DELETE ON messages
BEGIN
    SELECT RAISE(ABORT, 'messages: the log is only added to. DELETE the session, or write what should hold instead as a new message');
END;

-- Document 000: conversations and their steps.

CREATE TRIGGER conversations_insert INSTEAD OF INSERT ON conversations
BEGIN
    SELECT RAISE(ABORT, 'CHECK constraint failed: conversations.thread_id, user_id and title are texts without NUL characters, not bytes or numbers')
    WHERE NOT IS_TEXT[NEW.thread_id] OR NOT IS_TEXT[NEW.user_id] OR NOT IS_TEXT[NEW.title];
    SELECT RAISE(ABORT, 'UNIQUE constraint failed: conversations.thread_id: there is a conversation with this id; UPDATE its title and tags, INSERT its messages')
    WHERE EXISTS (SELECT 1 FROM threads WHERE id = NEW.thread_id);
    SELECT RAISE(ABORT, 'CHECK constraint failed: conversations.tool_categories and tags are JSON lists of texts')
    WHERE NOT TEXT_LIST[NEW.tool_categories] OR NOT TEXT_LIST[NEW.tags];
    SELECT RAISE(ABORT, 'CHECK constraint failed: conversations.state_data is a JSON object')
    WHERE NEW.state_data IS NOT NULL
      AND CASE WHEN json_valid(NEW.state_data) THEN json_type(NEW.state_data) <> 'object' ELSE TRUE END;
    SELECT RAISE(ABORT, 'conversations.state_data is computed: of a new conversation it may hold messages, as {"role", "content"} with texts. INSERT its steps into conversation_steps, or read such a database by `longthread import`')
    WHERE EXISTS (
        SELECT 1 FROM json_each(NEW.state_data) s
        WHERE s.key NOT IN ('question', 'messages') AND s.type NOT IN ('null', 'false')
          AND s.value NOT IN ('[]', '{}', '', 0) AND s.key <> 'max_steps')
       OR EXISTS (
        SELECT 1 FROM json_each(NEW.state_data, '$.messages') m
        WHERE m.type <> 'object' OR coalesce(json_type(m.value, '$.content'), '') <> 'text');
    SELECT RAISE(ABORT, 'CHECK constraint failed: a time of conversations is no ISO 8601 time')
    WHERE NEW.created_at IS NOT NULL AND STORED_TIME[NEW.created_at] IS NULL
       OR NEW.updated_at IS NOT NULL AND STORED_TIME[NEW.updated_at] IS NULL;
    SELECT RAISE(ABORT, 'NOT NULL constraint failed: conversations.thread_id: a conversation with messages needs an id')
    WHERE NEW.thread_id IS NULL AND json_array_length(NEW.state_data, '$.messages') > 0;
    INSERT INTO threads (id, user_id, title, tool_categories, tags, created_at, updated_at)
    VALUES (coalesce(NEW.thread_id, RANDOM_UUID[]), coalesce(NEW.user_id, 'default'), NEW.title,
            json(coalesce(NEW.tool_categories, '[]')), json(coalesce(NEW.tags, '[]')),
            coalesce(STORED_TIME[NEW.created_at], NOW[]),
            coalesce(STORED_TIME[NEW.updated_at], STORED_TIME[NEW.created_at], NOW[]));
    INSERT INTO messages (session_id, role, content, created_at)
    SELECT NEW.thread_id, json_extract(m.value, '$.role'), json_extract(m.value, '$.content'),
           coalesce(json_extract(m.value, '$.timestamp'), NEW.updated_at, NEW.created_at)
    FROM json_each(NEW.state_data, '$.messages') m ORDER BY m.key;
END;

CREATE TRIGGER conversations_update INSTEAD OF UPDATE ON conversations
BEGIN
    SELECT RAISE(ABORT, 'CHECK constraint failed: conversations.title is a text without NUL characters, not bytes or numbers')
    WHERE NOT IS_TEXT[NEW.title];
    SELECT RAISE(ABORT, 'conversations: thread_id, user_id and created_at do not change; export the conversation and import it for another user')
    WHERE NEW.thread_id IS NOT OLD.thread_id OR NEW.user_id IS NOT OLD.user_id OR NEW.created_at IS NOT OLD.created_at;
    SELECT RAISE(ABORT, 'conversations: state_data and tool_categories are computed from what happened; INSERT messages, or conversation_steps')
    WHERE NEW.state_data IS NOT OLD.state_data OR NEW.tool_categories IS NOT OLD.tool_categories;
    SELECT RAISE(ABORT, 'CHECK constraint failed: conversations.tags is a JSON list of texts') WHERE NOT TEXT_LIST[NEW.tags];
    UPDATE thread_activity SET label = NEW.title, last_active_at = NEW.updated_at WHERE thread_id = OLD.thread_id;
    UPDATE threads SET tags = json(coalesce(NEW.tags, '[]')) WHERE id = OLD.thread_id AND NEW.tags IS NOT OLD.tags;
END;

CREATE TRIGGER conversations_delete INSTEAD OF DELETE ON conversations
BEGIN
    DELETE FROM thread_activity WHERE thread_id = OLD.thread_id;
END;

-- A step is a call with its result; the last one, `finish`, is the answer. The result keeps the step as it was said.
CREATE TRIGGER conversation_steps_insert INSTEAD OF INSERT ON conversation_steps
BEGIN
    SELECT RAISE(ABORT, 'CHECK constraint failed: conversation_steps.thread_id and step_data are texts without NUL characters, not bytes or numbers')
    WHERE NOT IS_TEXT[NEW.thread_id] OR NOT IS_TEXT[NEW.step_data];
    SELECT RAISE(ABORT, 'FOREIGN KEY constraint failed: conversation_steps.thread_id names no conversation; INSERT it first')
    WHERE NOT EXISTS (SELECT 1 FROM threads WHERE id = NEW.thread_id);
    SELECT RAISE(ABORT, 'conversation_steps.id is computed: leave it out') WHERE NEW.id IS NOT NULL;
    SELECT RAISE(ABORT, 'a run is being executed on this conversation: write when it has ended')
    WHERE EXISTS (SELECT 1 FROM runs WHERE thread_id = NEW.thread_id AND status = 'running');
    SELECT RAISE(ABORT, 'CHECK constraint failed: conversation_steps.step_data is a JSON object with `action`')
    WHERE CASE WHEN json_valid(NEW.step_data) THEN coalesce(json_type(NEW.step_data, '$.action'), '') <> 'text' ELSE TRUE END;
    SELECT RAISE(ABORT, 'CHECK constraint failed: conversation_steps.step_index is the number of steps before this one')
    WHERE NEW.step_index IS NOT (SELECT count(*) FROM conversation_steps WHERE thread_id = NEW.thread_id);
    SELECT RAISE(ABORT, 'CHECK constraint failed: conversation_steps.created_at or the step''s timestamp is no ISO 8601 time')
    WHERE coalesce(NEW.created_at, json_extract(NEW.step_data, '$.timestamp')) IS NOT NULL
      AND STORED_TIME[coalesce(NEW.created_at, json_extract(NEW.step_data, '$.timestamp'))] IS NULL;
    INSERT INTO entries (thread_id, seq, parent_seq, id, role, text, tool_calls, tool_call_id, name, metadata, created_at)
    SELECT t.id, t.entry_count + 1, t.tip, RANDOM_UUID[], 'assistant',
           coalesce(json_extract(NEW.step_data, '$.thought'), ''),
           json_array(json_object(
               'id', 'step_' || (t.entry_count + 1), 'name', substr(json_extract(NEW.step_data, '$.action'), 1, 64),
               'args', CASE json_type(NEW.step_data, '$.args') WHEN 'object' THEN json_extract(NEW.step_data, '$.args')
                            ELSE json('{}') END)),
           NULL, NULL, NULL, STEP_TIME[]
    FROM threads t WHERE t.id = NEW.thread_id AND NOT IS_FINISH[];
    INSERT INTO entries (thread_id, seq, parent_seq, id, role, text, tool_calls, tool_call_id, name, metadata, created_at)
    SELECT t.id, t.entry_count + 2, t.entry_count + 1, RANDOM_UUID[], 'tool',
           CASE json_type(NEW.step_data, '$.observation') WHEN 'object' THEN json_extract(NEW.step_data, '$.observation')
                WHEN 'array' THEN json_extract(NEW.step_data, '$.observation')
                WHEN 'text' THEN json_quote(json_extract(NEW.step_data, '$.observation'))
                ELSE coalesce(json_extract(NEW.step_data, '$.content'), '') END,
           NULL, 'step_' || (t.entry_count + 1), substr(json_extract(NEW.step_data, '$.action'), 1, 64),
           json_object('imported_step', json(NEW.step_data)), STEP_TIME[]
    FROM threads t WHERE t.id = NEW.thread_id AND NOT IS_FINISH[];
    INSERT INTO entries (thread_id, seq, parent_seq, id, role, text, metadata, created_at)
    SELECT t.id, t.entry_count + 1, t.tip, RANDOM_UUID[], 'assistant',
           coalesce(json_extract(NEW.step_data, '$.content'), ''),
           json_object('kind', 'answer', 'imported_step', json(NEW.step_data)), STEP_TIME[]
    FROM threads t WHERE t.id = NEW.thread_id AND IS_FINISH[];
    UPDATE threads
    SET (tip, entry_count) = (SELECT max(e.seq), max(e.seq) FROM entries e WHERE e.thread_id = NEW.thread_id),
        updated_at = max(updated_at, STEP_TIME[])
    WHERE id = NEW.thread_id;
END;

CREATE TRIGGER conversation_steps_update INSTEAD OF UPDATE ON conversation_steps
BEGIN
    SELECT RAISE(ABORT, 'conversation_steps: a step does not change: the log is only added to');
END;

CREATE TRIGGER conversation_steps_delete INSTEAD OF DELETE ON conversation_steps
BEGIN
    SELECT RAISE(ABORT, 'conversation_steps: the log is only added to. DELETE the conversation: its steps go with it');
END;

-- Document 003: conversation states.

-- Storing one again is an update of it, as the document says.
CREATE TRIGGER conversation_state_insert INSTEAD OF INSERT ON conversation_state
BEGIN
    SELECT RAISE(ABORT, 'CHECK constraint failed: conversation_state.scid and last_signature are texts without NUL characters, not bytes or numbers')
    WHERE NOT IS_TEXT[NEW.scid] OR NOT IS_TEXT[NEW.last_signature];
    SELECT RAISE(ABORT, 'conversation_state.id is the conversation''s number in this database: leave it out')
    WHERE NEW.id IS NOT NULL;
    SELECT RAISE(ABORT, 'NOT NULL constraint failed: conversation_state.scid, client_type and authoritative_history')
    WHERE NEW.scid IS NULL OR NEW.client_type IS NULL OR NEW.authoritative_history IS NULL;
    SELECT RAISE(ABORT, 'CHECK constraint failed: a time of conversation_state is no ISO 8601 time')
    WHERE NEW.created_at IS NOT NULL AND STORED_TIME[NEW.created_at] IS NULL;
    SELECT RAISE(ABORT, 'UNIQUE constraint failed: conversation_state.scid: it is another user''s conversation')
    WHERE (SELECT user_id FROM threads WHERE id = NEW.scid) <> 'default';
    INSERT INTO threads (id, created_at, updated_at)
    SELECT NEW.scid, coalesce(STORED_TIME[NEW.created_at], NOW[]),
           coalesce(STORED_TIME[NEW.created_at], NOW[])
    WHERE NOT EXISTS (SELECT 1 FROM threads WHERE id = NEW.scid);
    UPDATE conversation_state
    SET client_type = NEW.client_type, authoritative_history = NEW.authoritative_history,
        last_signature = NEW.last_signature, expires_at = NEW.expires_at,
        updated_at = coalesce(NEW.updated_at, NOW[]), access_count = coalesce(NEW.access_count, access_count)
    WHERE scid = NEW.scid;
END;

CREATE TRIGGER conversation_state_update INSTEAD OF UPDATE ON conversation_state
BEGIN
    SELECT RAISE(ABORT, 'CHECK constraint failed: conversation_state.authoritative_history and last_signature are texts without NUL characters, not bytes or numbers')
    WHERE NOT IS_TEXT[NEW.authoritative_history] OR NOT IS_TEXT[NEW.last_signature];
    SELECT RAISE(ABORT, 'conversation_state: id, scid and created_at do not change')
    WHERE NEW.id IS NOT OLD.id OR NEW.scid IS NOT OLD.scid OR NEW.created_at IS NOT OLD.created_at;
    SELECT RAISE(ABORT, 'CHECK constraint failed: conversation_state.client_type is cursor, augment, claude_code or unknown')
    WHERE coalesce(NEW.client_type, '') NOT IN ('cursor', 'augment', 'claude_code', 'unknown');
    SELECT RAISE(ABORT, 'CHECK constraint failed: conversation_state.authoritative_history is a JSON list of messages')
    WHERE CASE WHEN json_valid(NEW.authoritative_history) THEN json_type(NEW.authoritative_history) <> 'array' ELSE TRUE END;
    SELECT RAISE(ABORT, 'CHECK constraint failed: a message of conversation_state.authoritative_history has the role system, user, assistant or tool')
    WHERE EXISTS (SELECT 1 FROM json_each(NEW.authoritative_history) m
                  WHERE m.type <> 'object' OR coalesce(json_extract(m.value, '$.role'), '') NOT IN ('system', 'user', 'assistant', 'tool'));
    SELECT RAISE(ABORT, 'CHECK constraint failed: a time of conversation_state is no ISO 8601 time')
    WHERE NEW.expires_at IS NOT NULL AND STORED_TIME[NEW.expires_at] IS NULL OR STORED_TIME[NEW.updated_at] IS NULL;
    SELECT RAISE(ABORT, 'CHECK constraint failed: conversation_state.access_count is a whole number')
    WHERE typeof(NEW.access_count) <> 'integer';
    SELECT RAISE(ABORT, 'a run is being executed on this conversation: write when it has ended')
    WHERE NEW.authoritative_history IS NOT OLD.authoritative_history
      AND EXISTS (SELECT 1 FROM runs WHERE thread_id = OLD.scid AND status = 'running');
    -- The messages that are there already stay; what follows the last of them begins a branch, if anything stood there.
    UPDATE threads SET tip = CASE SAME_MESSAGES[] WHEN json_array_length(OLD.authoritative_history) THEN tip ELSE coalesce((
        SELECT s.seq FROM state_ends s WHERE s.thread_id = OLD.scid AND s.place = SAME_MESSAGES[] - 1), 0) END
    WHERE id = OLD.scid AND NEW.authoritative_history IS NOT OLD.authoritative_history;
    INSERT INTO entries (thread_id, seq, parent_seq, id, role, text, tool_calls, tool_call_id, name, payload, created_at)
    SELECT t.id, t.entry_count + p.n, CASE p.n WHEN 1 THEN t.tip ELSE t.entry_count + p.n - 1 END, RANDOM_UUID[], p.role,
           p.text, p.tool_calls, p.tool_call_id, p.name, CAST(p.payload AS BLOB),
           coalesce(STORED_TIME[nullif(NEW.updated_at, OLD.updated_at)], NOW[])
    FROM threads t JOIN (
        SELECT row_number() OVER (ORDER BY place, part) AS n, role, text, tool_calls, tool_call_id, name,
               CASE WHEN is_whole THEN NULL
                    WHEN row_number() OVER (PARTITION BY place ORDER BY part) > 1 THEN json_object('client_messages', json('[]'))
                    WHEN blocks IS NULL THEN json_object('client_messages', json_array(json(message)))
                    ELSE json_object('content', json(blocks), 'client_messages', json_array(json(message))) END AS payload
        FROM (
            -- Results of calls stand in a user's message where a client speaks Anthropic's dialect.
            SELECT m.key AS place, r.key AS part, m.value AS message, 'tool' AS role,
                   BLOCKS_TEXT[r.value] AS text, NULL AS tool_calls,
                   coalesce(json_extract(r.value, '$.tool_use_id'), '') AS tool_call_id, NULL AS name, NULL AS blocks,
                   FALSE AS is_whole
            FROM json_each(NEW.authoritative_history) m JOIN json_each(m.value, '$.content') r
            WHERE m.key >= SAME_MESSAGES[] AND json_extract(m.value, '$.role') = 'user' AND r.type = 'object'
              AND json_type(m.value, '$.content') = 'array' AND json_extract(r.value, '$.type') = 'tool_result'
            UNION ALL
            SELECT m.key, 4294967296, m.value, json_extract(m.value, '$.role'), BLOCKS_TEXT[m.value],
                   CASE json_extract(m.value, '$.role') WHEN 'assistant' THEN nullif(coalesce((
                       SELECT json_group_array(json_object('id', json_extract(c.value, '$.id'), 'name', CALL_NAME[c.value],
                                                           'args', json(CALL_ARGS[c.value])))
                       FROM json_each(m.value, '$.tool_calls') c
                       WHERE c.type = 'object' AND CALL_NAME[c.value] IS NOT NULL AND json_valid(CALL_ARGS[c.value])
                       HAVING count(*) > 0), (
                       SELECT json_group_array(json_object('id', json_extract(c.value, '$.id'), 'name', CALL_NAME[c.value],
                                                           'args', json(CALL_ARGS[c.value])))
                       FROM json_each(m.value, '$.content') c
                       WHERE c.type = 'object' AND json_extract(c.value, '$.type') = 'tool_use'
                         AND CALL_NAME[c.value] IS NOT NULL)), '[]') END,
                   CASE json_extract(m.value, '$.role') WHEN 'tool' THEN
                       coalesce(json_extract(m.value, '$.tool_call_id'), '') END,
                   CASE json_type(m.value, '$.name') WHEN 'text' THEN json_extract(m.value, '$.name') END,
                   CASE json_type(m.value, '$.content') WHEN 'array' THEN json_extract(m.value, '$.content') END,
                   json_type(m.value, '$.content') IS 'text' AND NOT EXISTS (
                       SELECT 1 FROM json_each(m.value) k WHERE k.key NOT IN ('role', 'content')
                         AND NOT (k.key = 'name' AND k.type = 'text')
                         AND NOT (k.key = 'tool_call_id' AND k.type = 'text' AND json_extract(m.value, '$.role') = 'tool'))
            FROM json_each(NEW.authoritative_history) m
            WHERE m.key >= SAME_MESSAGES[] AND NOT (
                json_extract(m.value, '$.role') = 'user' AND coalesce(json_type(m.value, '$.content'), '') = 'array'
                AND json_array_length(m.value, '$.content') > 0 AND NOT EXISTS (
                    SELECT 1 FROM json_each(m.value, '$.content') r
                    WHERE CASE r.type WHEN 'object' THEN coalesce(json_extract(r.value, '$.type'), '') ELSE '' END <> 'tool_result'))
        )
    ) p WHERE t.id = OLD.scid;
    UPDATE threads
    SET (tip, entry_count) = (SELECT max(e.seq), max(e.seq) FROM entries e WHERE e.thread_id = OLD.scid)
    WHERE id = OLD.scid AND entry_count < (SELECT max(e.seq) FROM entries e WHERE e.thread_id = OLD.scid);
    UPDATE threads
    SET updated_at = coalesce(STORED_TIME[nullif(NEW.updated_at, OLD.updated_at)], NOW[]),
        expires_at = STORED_TIME[NEW.expires_at],
        title = coalesce(title, (SELECT TITLE[e.text] FROM entries e WHERE e.thread_id = OLD.scid AND e.role = 'user'
                                 ORDER BY e.seq LIMIT 1))
    WHERE id = OLD.scid;
    INSERT INTO thread_clients (thread_id, client_type, last_signature, access_count)
    SELECT OLD.scid, NEW.client_type, NEW.last_signature, NEW.access_count
    WHERE NEW.client_type IS NOT OLD.client_type OR NEW.last_signature IS NOT OLD.last_signature
       OR NEW.access_count IS NOT OLD.access_count
       OR NOT EXISTS (SELECT 1 FROM thread_clients WHERE thread_id = OLD.scid)
    ON CONFLICT (thread_id) DO UPDATE SET client_type = excluded.client_type, last_signature = excluded.last_signature,
                                          access_count = excluded.access_count;
END;

CREATE TRIGGER conversation_state_delete INSTEAD OF DELETE ON conversation_state
BEGIN
    DELETE FROM thread_activity WHERE thread_id = OLD.scid;
END;

-- Document 004: the activity of threads. What deletes a conversation by another name comes here.

CREATE TRIGGER thread_activity_insert INSTEAD OF INSERT ON thread_activity
BEGIN
    SELECT RAISE(ABORT, 'CHECK constraint failed: thread_activity.thread_id and label are texts without NUL characters, not bytes or numbers')
    WHERE NOT IS_TEXT[NEW.thread_id] OR NOT IS_TEXT[NEW.label];
    SELECT RAISE(ABORT, 'NOT NULL constraint failed: thread_activity.thread_id') WHERE NEW.thread_id IS NULL;
    SELECT RAISE(ABORT, 'UNIQUE constraint failed: thread_activity.thread_id: there is a conversation with this id; UPDATE it')
    WHERE EXISTS (SELECT 1 FROM threads WHERE id = NEW.thread_id);
    SELECT RAISE(ABORT, 'CHECK constraint failed: thread_activity.last_active_at is no ISO 8601 time')
    WHERE NEW.last_active_at IS NOT NULL AND STORED_TIME[NEW.last_active_at] IS NULL;
    INSERT INTO threads (id, title, created_at, updated_at)
    VALUES (NEW.thread_id, NEW.label, coalesce(STORED_TIME[NEW.last_active_at], NOW[]),
            coalesce(STORED_TIME[NEW.last_active_at], NOW[]));
END;

CREATE TRIGGER thread_activity_update INSTEAD OF UPDATE ON thread_activity
BEGIN
    SELECT RAISE(ABORT, 'CHECK constraint failed: thread_activity.label is a text without NUL characters, not bytes or numbers')
    WHERE NOT IS_TEXT[NEW.label];
    SELECT RAISE(ABORT, 'thread_activity: thread_id does not change') WHERE NEW.thread_id IS NOT OLD.thread_id;
    SELECT RAISE(ABORT, 'CHECK constraint failed: thread_activity.last_active_at is no ISO 8601 time')
    WHERE STORED_TIME[NEW.last_active_at] IS NULL;
    UPDATE threads SET title = NEW.label WHERE id = OLD.thread_id AND NEW.label IS NOT OLD.label;
    UPDATE threads SET updated_at = STORED_TIME[NEW.last_active_at]
    WHERE id = OLD.thread_id AND NEW.last_active_at IS NOT OLD.last_active_at;
END;

CREATE TRIGGER thread_activity_delete INSTEAD OF DELETE ON thread_activity
BEGIN
    SELECT RAISE(ABORT, 'a run is being executed on this conversation: stop it, or delete when it has ended')
    WHERE EXISTS (SELECT 1 FROM runs r JOIN workers w ON w.id = r.owner
                  WHERE r.thread_id = OLD.thread_id AND r.status = 'running' AND r.waiting_since IS NULL);
    DELETE FROM threads WHERE id = OLD.thread_id;
END;

-- What is written to the tables of the documents beside the views.

-- A connection without foreign keys deletes what belongs to a thread, a run, a memory, an agent or an item, too.
DROP TRIGGER IF EXISTS access_user_rows;
DROP TRIGGER IF EXISTS access_group_rows;
DROP TRIGGER IF EXISTS access_project_rows;
DROP TRIGGER IF EXISTS thread_rows;
CREATE TRIGGER access_user_rows AFTER DELETE ON access_users
BEGIN
    DELETE FROM access_identities WHERE user_id = OLD.id;
    DELETE FROM access_members WHERE user_id = OLD.id;
    DELETE FROM access_sessions WHERE user_id = OLD.id;
    DELETE FROM access_links WHERE user_id = OLD.id;
    DELETE FROM access_keys WHERE user_id = OLD.id;
END;

CREATE TRIGGER access_group_rows AFTER DELETE ON access_groups
BEGIN
    DELETE FROM access_members WHERE group_id = OLD.id;
END;

CREATE TRIGGER access_project_rows AFTER DELETE ON access_projects
BEGIN
    DELETE FROM access_project_members WHERE project_id = OLD.id;
END;

CREATE TRIGGER thread_rows AFTER DELETE ON threads
BEGIN
    DELETE FROM pending_deletions WHERE thread_id = OLD.id;
    DELETE FROM entries WHERE thread_id = OLD.id;
    DELETE FROM branch_tips WHERE thread_id = OLD.id;
    DELETE FROM message_metadata WHERE thread_id = OLD.id;
    DELETE FROM folds WHERE thread_id = OLD.id;
    DELETE FROM runs WHERE thread_id = OLD.id;
    DELETE FROM background_jobs WHERE thread_id = OLD.id;
    DELETE FROM queued_questions WHERE thread_id = OLD.id;
    DELETE FROM idempotency_keys WHERE thread_id = OLD.id;
    DELETE FROM share_links WHERE thread_id = OLD.id;
    DELETE FROM steps WHERE thread_id = OLD.id;
    DELETE FROM events WHERE thread_id = OLD.id;
    DELETE FROM prompts WHERE thread_id = OLD.id;
    DELETE FROM approvals WHERE thread_id = OLD.id;
    DELETE FROM checkpoints WHERE thread_id = OLD.id;
    DELETE FROM checkpoint_blobs WHERE thread_id = OLD.id;
    DELETE FROM checkpoint_writes WHERE thread_id = OLD.id;
    DELETE FROM memory_sources WHERE session_id = OLD.id;
    DELETE FROM memory_uses WHERE session_id = OLD.id;
    DELETE FROM conversation_summaries WHERE thread_id = OLD.id;
    DELETE FROM memory_vectors WHERE thread_id = OLD.id;
    DELETE FROM memory_topics WHERE thread_id = OLD.id;
    DELETE FROM memory_topic_spans WHERE thread_id = OLD.id;
    DELETE FROM thread_clients WHERE thread_id = OLD.id;
    DELETE FROM gateway_frames WHERE thread_id = OLD.id;
    DELETE FROM gateway_calls WHERE thread_id = OLD.id;
    DELETE FROM gateway_nodes WHERE thread = OLD.number;
    DELETE FROM recall_segments WHERE thread_id = OLD.id;
    DELETE FROM recall_postings WHERE thread_id = OLD.id;
    DELETE FROM recall_signatures WHERE thread_id = OLD.id;
    DELETE FROM recall_embedded WHERE thread_id = OLD.id;
    DELETE FROM recall_bound WHERE thread_id = OLD.id;
    DELETE FROM recall_loose WHERE thread_id = OLD.id;
    DELETE FROM board_link_threads WHERE asked_in = OLD.id;
    UPDATE board_cards SET asked_in = NULL WHERE asked_in = OLD.id;
END;

DROP TRIGGER IF EXISTS board_rows;
CREATE TRIGGER board_rows AFTER DELETE ON boards
BEGIN
    DELETE FROM board_cards WHERE board_id = OLD.id;
    DELETE FROM board_links WHERE board_id = OLD.id;
END;

DROP TRIGGER IF EXISTS board_link_rows;
CREATE TRIGGER board_link_rows AFTER DELETE ON board_links
BEGIN
    DELETE FROM board_link_threads WHERE link_id = OLD.id;
END;

DROP TRIGGER IF EXISTS run_rows;
CREATE TRIGGER run_rows AFTER DELETE ON runs
BEGIN
    DELETE FROM memory_uses WHERE session_id = OLD.thread_id AND run_id = OLD.id;
END;

DROP TRIGGER IF EXISTS memory_rows;
CREATE TRIGGER memory_rows AFTER DELETE ON memories
BEGIN
    DELETE FROM memory_sources WHERE memory_id = OLD.id;
    DELETE FROM memory_uses WHERE memory_id = OLD.id;
END;

DROP TRIGGER IF EXISTS agent_rows;
CREATE TRIGGER agent_rows AFTER DELETE ON agents
BEGIN
    DELETE FROM memories WHERE agent_id = OLD.id;
END;

DROP TRIGGER IF EXISTS item_rows;
CREATE TRIGGER item_rows AFTER DELETE ON items
BEGIN
    DELETE FROM item_terms WHERE user_id = OLD.user_id AND namespace = OLD.namespace AND key = OLD.key;
    DELETE FROM item_vectors WHERE user_id = OLD.user_id AND namespace = OLD.namespace AND key = OLD.key;
END;

-- A chunk of another program's becomes an entry on a branch of its own, which recall finds, unless a message has its lines, or
-- a longer chunk as a part that neither begins nor ends inside a word. The row keeps the vector; a vector of Longthread's knows its entry.
DROP TRIGGER IF EXISTS memory_chunk;
CREATE TRIGGER memory_chunk AFTER INSERT ON memory_vectors WHEN NEW.seq IS NULL AND NEW.model IS NULL
BEGIN
    SELECT RAISE(ABORT, 'CHECK constraint failed: memory_vectors.id, thread_id and chunk are texts without NUL characters, not bytes or numbers')
    WHERE NOT IS_TEXT[NEW.id] OR NOT IS_TEXT[NEW.thread_id] OR NOT IS_TEXT[NEW.chunk];
    SELECT RAISE(ABORT, 'CHECK constraint failed: memory_vectors.created_at is no ISO 8601 time')
    WHERE NEW.created_at IS NOT NULL AND STORED_TIME[NEW.created_at] IS NULL;
    SELECT RAISE(ABORT, 'FOREIGN KEY constraint failed: memory_vectors.thread_id names no conversation; INSERT it first')
    WHERE NOT EXISTS (SELECT 1 FROM threads WHERE id = NEW.thread_id);
    INSERT INTO memory_topic_spans (thread_id, topic, first_seq, last_seq, mentions, seen_at)
    SELECT t.id, n.value, t.entry_count + 1, t.entry_count + 1, 1, coalesce(STORED_TIME[NEW.created_at], NOW[])
    FROM threads t JOIN (SELECT DISTINCT value FROM json_each(NEW.topics)) n
    WHERE t.id = NEW.thread_id AND NOT IS_SAID[];
    INSERT INTO entries (thread_id, seq, parent_seq, id, role, text, metadata, created_at)
    SELECT id, entry_count + 1, 0, RANDOM_UUID[], 'system', NEW.chunk, '{"kind":"chunk"}',
           coalesce(STORED_TIME[NEW.created_at], NOW[])
    FROM threads WHERE id = NEW.thread_id AND NOT IS_SAID[];
    UPDATE threads SET entry_count = (SELECT max(seq) FROM entries WHERE thread_id = NEW.thread_id)
    WHERE id = NEW.thread_id AND entry_count < (SELECT max(seq) FROM entries WHERE thread_id = NEW.thread_id);
    UPDATE memory_vectors SET model = 'imported' WHERE id = NEW.id;
END;

-- A summary that another program or a person changed is kept as it is: the next pass adds to it.
DROP TRIGGER IF EXISTS summary_written;
CREATE TRIGGER summary_written AFTER UPDATE OF summary ON conversation_summaries
WHEN NEW.summary <> OLD.summary AND NEW.config_hash IS OLD.config_hash AND NEW.digest IS OLD.digest
    AND NEW.last_seq IS OLD.last_seq AND NEW.model IS OLD.model
BEGIN
    UPDATE conversation_summaries
    SET model = 'written', digest = CASE WHEN json_valid(digest) THEN json_remove(digest, '$.written', '$.since', '$.unwritten') END
    WHERE thread_id = NEW.thread_id;
END;
