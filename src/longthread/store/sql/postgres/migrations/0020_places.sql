-- What every write to a thread begins with, as a function: a server without prepared statements plans a query each time,
-- and took longer for this one than for all that is then written. It keeps the plans of a function.

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
