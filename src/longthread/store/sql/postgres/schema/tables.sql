-- The indexes, triggers and functions that are PostgreSQL's own, as a new store gets them after `common/schema/tables.sql`.

-- Entries are found by a hash of their ids: whole ids of threads and entries were a tenth of the database. That a thread
-- has each id once is checked under the thread's lock, before an entry is written.
CREATE INDEX entries_by_id ON entries USING hash ((thread_id || ' ' || id));

-- Recall shows one version of a message; the others are found by the id that its application gave it, as JSON has it.
CREATE INDEX entries_by_message ON entries (
    thread_id, substring(metadata FROM '"message_id":"((?:[^"\\]|\\.)*)"')
) WHERE substring(metadata FROM '"message_id":"((?:[^"\\]|\\.)*)"') IS NOT NULL;

-- Checkpoints are found by a hash of their thread's id: whole ids of threads were half of the index.
CREATE UNIQUE INDEX checkpoints_by_id ON checkpoints (hashtextextended(thread_id, 0), ns, id) WITH (fillfactor = 100);

-- Metadata is text as LangGraph gave it. A number too large for PostgreSQL's JSON, or a NUL, makes it unreadable there.
CREATE FUNCTION as_jsonb(said TEXT) RETURNS JSONB LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CAST(said AS JSONB);
EXCEPTION WHEN OTHERS THEN
    RETURN '"unreadable"';
END
$$;

-- Checkpoints are found by what their metadata contains. The usual metadata, a number, sorts before the colon.
CREATE INDEX checkpoints_by_metadata ON checkpoints USING gin (as_jsonb(metadata) jsonb_path_ops) WHERE metadata > ':';

CREATE FUNCTION update_updated_at() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at = now();
    RETURN NEW;
END
$$;

CREATE INDEX idx_memory_vectors_topics ON memory_vectors USING gin (topics);

-- Messages are compressed where that is worth it, and stay with their rows: rows of a kilobyte or two fill pages badly.
ALTER TABLE entries ALTER COLUMN text SET STORAGE MAIN;
ALTER TABLE entries SET (toast_tuple_target = 512);
-- What is compressed already, or is hashes or bits, does not get smaller.
ALTER TABLE prompts ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE runs ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE recall_postings ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE recall_signatures ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE recall_volume_postings ALTER COLUMN data SET STORAGE EXTERNAL;
-- Rows come in the order of these keys, and what was written does not change: their pages need no room for more.
ALTER INDEX entries_pkey SET (fillfactor = 100);
ALTER INDEX runs_pkey SET (fillfactor = 100);
ALTER INDEX checkpoints_pkey SET (fillfactor = 100);

-- Triggers

CREATE SEQUENCE thread_numbers OWNED BY threads.number;

CREATE FUNCTION number_thread() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE threads SET number = nextval('thread_numbers'), incarnation = gen_random_uuid() WHERE id = NEW.id;
    RETURN NULL;
END;
$$;

-- After, not before: a row that conflicts with one that exists fires no trigger then.
CREATE TRIGGER thread_number AFTER INSERT ON threads FOR EACH ROW EXECUTE FUNCTION number_thread();

-- The deletion of a thread deletes the threads below it.
CREATE FUNCTION delete_threads_below() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM threads WHERE parent_thread_id = OLD.id AND user_id = OLD.user_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER threads_below AFTER DELETE ON threads FOR EACH ROW EXECUTE FUNCTION delete_threads_below();

-- Document 002: a session is deleted with its agent.
CREATE FUNCTION delete_threads_of_agent() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM threads WHERE agent_id = CAST(OLD.id AS TEXT);
    RETURN NULL;
END
$$;

CREATE TRIGGER agents_cascade AFTER DELETE ON agents FOR EACH ROW EXECUTE FUNCTION delete_threads_of_agent();

CREATE TRIGGER agents_updated_at BEFORE UPDATE ON agents FOR EACH ROW EXECUTE FUNCTION update_updated_at();
CREATE TRIGGER skills_updated_at BEFORE UPDATE ON skills FOR EACH ROW EXECUTE FUNCTION update_updated_at();
CREATE TRIGGER tools_updated_at BEFORE UPDATE ON tools FOR EACH ROW EXECUTE FUNCTION update_updated_at();
CREATE TRIGGER sources_updated_at BEFORE UPDATE ON sources FOR EACH ROW EXECUTE FUNCTION update_updated_at();
CREATE TRIGGER conversation_summaries_updated_at BEFORE UPDATE ON conversation_summaries
    FOR EACH ROW EXECUTE FUNCTION update_updated_at();

-- A memory without a user is that of the user of the thread that it comes from.
CREATE FUNCTION memory_user() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    NEW.user_id = coalesce((SELECT t.user_id FROM threads t WHERE t.id = NEW.session_id), 'default');
    RETURN NEW;
END
$$;

CREATE TRIGGER memory_user BEFORE INSERT ON memories FOR EACH ROW WHEN (NEW.user_id IS NULL)
    EXECUTE FUNCTION memory_user();

-- A memory outlives the threads that said it: it is one's that is left, or says that there is none any more.
CREATE FUNCTION keep_memories() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE memories
    SET origin = (SELECT s.origin FROM memory_sources s WHERE s.memory_id = memories.id AND s.session_id = OLD.id)
    WHERE session_id IS NOT NULL
      AND id IN (SELECT s.memory_id FROM memory_sources s WHERE s.session_id = OLD.id AND s.origin IS NOT NULL);
    UPDATE memories
    SET source_deleted_at = now()
    WHERE session_id = OLD.id
      AND NOT EXISTS (SELECT 1 FROM memory_sources s WHERE s.memory_id = memories.id AND s.session_id <> OLD.id);
    UPDATE memories
    SET session_id = (
        SELECT s.session_id FROM memory_sources s
        WHERE s.memory_id = memories.id AND s.session_id <> OLD.id
        ORDER BY s.said_at DESC, s.session_id DESC
        LIMIT 1
    )
    WHERE session_id = OLD.id;
    RETURN OLD;
END
$$;

CREATE TRIGGER memories_outlive BEFORE DELETE ON threads FOR EACH ROW EXECUTE FUNCTION keep_memories();

-- A volume is deleted with its postings, and its threads are in none then.
CREATE FUNCTION loosen_volume() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO recall_loose (thread_id, user_id)
    SELECT thread_id, user_id FROM recall_bound WHERE user_id = OLD.user_id AND volume = OLD.id
    ON CONFLICT DO NOTHING;
    DELETE FROM recall_bound WHERE user_id = OLD.user_id AND volume = OLD.id;
    DELETE FROM recall_volume_postings WHERE user_id = OLD.user_id AND volume = OLD.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER volume_gone AFTER DELETE ON recall_volumes FOR EACH ROW EXECUTE FUNCTION loosen_volume();

CREATE FUNCTION loosen_thread() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO recall_loose (thread_id, user_id) VALUES (NEW.id, NEW.user_id) ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
CREATE TRIGGER thread_loose_at_first AFTER INSERT ON threads
    FOR EACH ROW WHEN (NEW.entry_count > 0) EXECUTE FUNCTION loosen_thread();
CREATE TRIGGER thread_loose AFTER UPDATE OF entry_count ON threads
    FOR EACH ROW WHEN (NEW.entry_count <> OLD.entry_count) EXECUTE FUNCTION loosen_thread();

-- What was deleted of a thread must be in no volume, and a volume knows the user and the agent of its threads.
CREATE FUNCTION unbind_thread() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM recall_volumes
    WHERE (user_id, id) = (SELECT user_id, volume FROM recall_bound WHERE thread_id = OLD.id);
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    UPDATE recall_loose SET user_id = NEW.user_id WHERE thread_id = NEW.id AND user_id <> NEW.user_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER thread_cut AFTER UPDATE OF first_seq, user_id, agent_id ON threads
    FOR EACH ROW WHEN (
        NEW.first_seq <> OLD.first_seq OR NEW.user_id <> OLD.user_id OR NEW.agent_id IS DISTINCT FROM OLD.agent_id
    ) EXECUTE FUNCTION unbind_thread();
CREATE TRIGGER thread_unbound BEFORE DELETE ON threads FOR EACH ROW EXECUTE FUNCTION unbind_thread();

-- What every write to a thread begins with, as a function: the server keeps the plans of a function. Without prepared
-- statements it would plan the query each time, and take longer for that than for all that is then written.
-- Locks a user's thread, and tells whether it and the newest checkpoint of a namespace are these, and no task of one has
-- rows. What is read is what was committed before the lock: each statement of a volatile function has its own snapshot.
CREATE FUNCTION is_at_place(
    thread TEXT, owner TEXT, known_tip BIGINT, known_size BIGINT, known_first BIGINT, known_incarnation TEXT,
    space TEXT, head TEXT, written TEXT
) RETURNS BOOLEAN LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM 1 FROM threads WHERE id = thread AND user_id = owner FOR NO KEY UPDATE;
    RETURN EXISTS (
        SELECT 1 FROM threads t
        WHERE t.id = thread AND t.user_id = owner AND t.tip = known_tip AND t.entry_count = known_size
          AND t.first_seq = known_first AND t.incarnation = known_incarnation
    ) AND head = (
        SELECT h.n || ' ' || h.writes || ' ' || h.id FROM checkpoints h
        WHERE h.thread_id = thread AND h.ns = space ORDER BY h.n DESC LIMIT 1
    ) AND NOT EXISTS (
        SELECT 1 FROM checkpoint_writes w WHERE w.thread_id = thread AND w.ns = space AND w.checkpoint_id = written
    );
END
$$;

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
