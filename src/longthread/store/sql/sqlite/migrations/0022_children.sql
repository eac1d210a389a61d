-- Conversations that an agent has with another on behalf of a third: each is below the one in which it was asked for.

-- Not a reference: a thread is copied and imported before or without the one that it is below.
ALTER TABLE threads ADD COLUMN parent_thread_id TEXT;
CREATE INDEX threads_of_parent ON threads (parent_thread_id) WHERE parent_thread_id IS NOT NULL;

-- The run of the parent thread, and the call in it, that a run answers.
ALTER TABLE runs ADD COLUMN parent_run_id TEXT;
ALTER TABLE runs ADD COLUMN parent_call_id TEXT;

-- Whoever deletes a thread deletes what is below it. All levels at once: a trigger does not set itself off.
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
