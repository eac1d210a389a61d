-- The indexes and triggers that are SQLite's own, as a new store gets them after `common/schema/tables.sql`.

-- Entries are found by a part of their ids and of their thread's: whole UUIDs were a tenth of the database. Of a UUID it is
-- one that differs, whatever its version, and of a short id of a thread its end; any other id is there whole.
-- That a thread has each id once is checked under the thread's lock, before an entry is written.
CREATE INDEX entries_by_id ON entries (
    CASE WHEN length(thread_id) IN (16, 36) AND substr(thread_id, -8) GLOB '[0-9a-z][0-9a-z][0-9a-z][0-9a-z][0-9a-z][0-9a-z][0-9a-z][0-9a-z]'
         THEN substr(thread_id, -6) ELSE thread_id END
    || CASE WHEN length(id) = 36 AND substr(id, -8) GLOB '[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'
            THEN substr(id, 11, 3) || substr(id, -8) ELSE id END
);

-- Recall shows one version of a message; the others are found by the id that its application gave it.
CREATE INDEX entries_by_message ON entries (
    thread_id, CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.message_id') END
) WHERE CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.message_id') END IS NOT NULL;

CREATE UNIQUE INDEX checkpoints_by_id ON checkpoints (thread_id, ns, id);

CREATE TRIGGER thread_number AFTER INSERT ON threads
BEGIN
    UPDATE threads SET number = (SELECT coalesce(max(number), 0) + 1 FROM threads WHERE id <> NEW.id),
                       incarnation = lower(hex(randomblob(8)))
    WHERE id = NEW.id;
END;

-- The deletion of a thread deletes the threads below it. All levels at once: a trigger does not fire itself.
CREATE TRIGGER threads_below AFTER DELETE ON threads
BEGIN
    DELETE FROM threads WHERE id IN (
        WITH RECURSIVE below (id) AS (
            SELECT id FROM threads WHERE parent_thread_id = OLD.id AND user_id = OLD.user_id
            UNION
            SELECT t.id FROM below b JOIN threads t ON t.parent_thread_id = b.id AND t.user_id = OLD.user_id
        )
        SELECT id FROM below
    );
END;

-- Document 002: a session is deleted with its agent.
CREATE TRIGGER agents_cascade AFTER DELETE ON agents
BEGIN
    DELETE FROM threads WHERE agent_id = OLD.id;
END;

-- 'now' is one moment within a statement, so that a trigger that sets `updated_at` ends when it fires for its own change.
CREATE TRIGGER tools_updated_at AFTER UPDATE ON tools
WHEN NEW.updated_at IS NOT strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
BEGIN
    UPDATE tools SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now') WHERE id = NEW.id;
END;

CREATE TRIGGER sources_updated_at AFTER UPDATE ON sources
WHEN NEW.updated_at IS NOT strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
BEGIN
    UPDATE sources SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now') WHERE id = NEW.id;
END;

CREATE TRIGGER conversation_summaries_updated_at AFTER UPDATE ON conversation_summaries
WHEN NEW.updated_at IS NOT strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
BEGIN
    UPDATE conversation_summaries SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
    WHERE thread_id = NEW.thread_id;
END;

-- A memory without a user is that of the user of the thread that it comes from.
CREATE TRIGGER memory_user AFTER INSERT ON memories WHEN NEW.user_id IS NULL
BEGIN
    UPDATE memories SET user_id = coalesce((SELECT t.user_id FROM threads t WHERE t.id = NEW.session_id), 'default')
    WHERE id = NEW.id;
END;

-- A memory outlives the threads that said it: it is one's that is left, or says that there is none any more.
CREATE TRIGGER memories_outlive BEFORE DELETE ON threads
BEGIN
    UPDATE memories
    SET origin = (SELECT s.origin FROM memory_sources s WHERE s.memory_id = memories.id AND s.session_id = OLD.id)
    WHERE session_id IS NOT NULL
      AND id IN (SELECT s.memory_id FROM memory_sources s WHERE s.session_id = OLD.id AND s.origin IS NOT NULL);
    UPDATE memories
    SET source_deleted_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
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
END;

-- A volume is deleted with its postings, and its threads are in none then.
CREATE TRIGGER volume_gone BEFORE DELETE ON recall_volumes
BEGIN
    INSERT OR IGNORE INTO recall_loose (thread_id, user_id)
    SELECT thread_id, user_id FROM recall_bound WHERE user_id = OLD.user_id AND volume = OLD.id;
    DELETE FROM recall_bound WHERE user_id = OLD.user_id AND volume = OLD.id;
    DELETE FROM recall_volume_postings WHERE user_id = OLD.user_id AND volume = OLD.id;
END;

CREATE TRIGGER thread_loose_at_first AFTER INSERT ON threads WHEN NEW.entry_count > 0
BEGIN
    INSERT OR IGNORE INTO recall_loose (thread_id, user_id) VALUES (NEW.id, NEW.user_id);
END;

CREATE TRIGGER thread_loose AFTER UPDATE OF entry_count ON threads WHEN NEW.entry_count <> OLD.entry_count
BEGIN
    INSERT OR IGNORE INTO recall_loose (thread_id, user_id) VALUES (NEW.id, NEW.user_id);
END;

-- What was deleted of a thread must be in no volume, and a volume knows the user and the agent of its threads.
CREATE TRIGGER thread_cut AFTER UPDATE OF first_seq, user_id, agent_id ON threads
WHEN NEW.first_seq <> OLD.first_seq OR NEW.user_id <> OLD.user_id OR NEW.agent_id IS NOT OLD.agent_id
BEGIN
    DELETE FROM recall_volumes
    WHERE (user_id, id) = (SELECT user_id, volume FROM recall_bound WHERE thread_id = OLD.id);
    UPDATE recall_loose SET user_id = NEW.user_id WHERE thread_id = NEW.id;
END;

CREATE TRIGGER thread_unbound BEFORE DELETE ON threads
BEGIN
    DELETE FROM recall_volumes
    WHERE (user_id, id) = (SELECT user_id, volume FROM recall_bound WHERE thread_id = OLD.id);
END;
