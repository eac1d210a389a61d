-- name: lock_thread
SELECT id, tip, entry_count, first_seq, incarnation, title IS NULL AS untitled
FROM threads WHERE id = :id AND user_id = :user_id FOR NO KEY UPDATE;

-- name: hold_thread
SELECT 1 FROM threads WHERE id = :id AND user_id = :user_id FOR NO KEY UPDATE;

-- name: select_messages
SELECT e.seq, e.parent_seq, e.id, e.role, e.text, e.tool_calls, e.tool_call_id, e.name, e.payload, e.metadata
FROM jsonb_array_elements(CAST(:runs AS JSONB)) r
JOIN entries e ON e.thread_id = :thread_id AND e.seq BETWEEN CAST(r ->> 0 AS BIGINT) AND CAST(r ->> 1 AS BIGINT);

-- name: select_entries_of_ids
SELECT e.* FROM jsonb_array_elements_text(CAST(:ids AS JSONB)) i JOIN entries e
    ON e.thread_id || ' ' || e.id = CAST(:thread_id AS TEXT) || ' ' || i
   AND e.thread_id || '' = :thread_id AND e.id = i;
