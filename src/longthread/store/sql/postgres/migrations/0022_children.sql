-- Conversations that an agent has with another on behalf of a third: each is below the one in which it was asked for.

-- Not a reference: a thread is copied and imported before or without the one that it is below.
ALTER TABLE threads ADD COLUMN parent_thread_id TEXT COLLATE "C";
CREATE INDEX threads_of_parent ON threads (parent_thread_id) WHERE parent_thread_id IS NOT NULL;

-- The run of the parent thread, and the call in it, that a run answers.
ALTER TABLE runs ADD COLUMN parent_run_id TEXT COLLATE "C";
ALTER TABLE runs ADD COLUMN parent_call_id TEXT COLLATE "C";

-- Whoever deletes a thread deletes what is below it.
CREATE FUNCTION delete_threads_below() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM threads WHERE parent_thread_id = OLD.id AND user_id = OLD.user_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER threads_below AFTER DELETE ON threads FOR EACH ROW EXECUTE FUNCTION delete_threads_below();
