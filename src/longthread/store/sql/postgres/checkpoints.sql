-- name: lock_thread
SELECT id, tip, entry_count, first_seq, incarnation, title IS NULL AS untitled
FROM threads WHERE id = :id AND user_id = :user_id FOR NO KEY UPDATE;

-- name: hold_thread
SELECT 1 FROM threads WHERE id = :id AND user_id = :user_id FOR NO KEY UPDATE;

-- name: hold_known_place
SELECT 1 AS found WHERE is_at_place(
    :id, :user_id, :tip, :size, :first_seq, :incarnation, :ns, :head, :written_id
);

-- name: select_messages
SELECT e.seq, e.parent_seq, e.id, e.role, e.text, e.tool_calls, e.tool_call_id, e.name, e.payload, e.metadata,
       e.replaces
FROM jsonb_array_elements(CAST(:runs AS JSONB)) r
JOIN entries e ON e.thread_id = :thread_id AND e.seq BETWEEN CAST(r ->> 0 AS BIGINT) AND CAST(r ->> 1 AS BIGINT);

-- name: select_place
-- The index on ids knows threads by a hash; without statistics, a plain comparison would have the whole thread read.
SELECT t.id, t.tip, t.entry_count, t.first_seq, t.incarnation, t.title IS NULL AS untitled,
       h.n AS head_n, h.id AS head_id, h.writes AS head_writes,
       (SELECT c.n FROM checkpoints c
        WHERE hashtextextended(c.thread_id, 0) = hashtextextended(:id, 0) AND c.ns = :ns AND c.id = :checkpoint_id
          AND c.thread_id || '' = :id) AS there,
       EXISTS (SELECT 1 FROM checkpoint_writes w
               WHERE w.thread_id = :id AND w.ns = :ns AND w.checkpoint_id = :written_id) AS tasks
FROM threads t LEFT JOIN checkpoints h ON h.thread_id = :id AND h.ns = :ns AND h.n = (
    SELECT max(n) FROM checkpoints WHERE thread_id = :id AND ns = :ns
)
WHERE t.id = :id AND t.user_id = :user_id;

-- name: select_checkpoint
SELECT c.thread_id, c.ns, c.n, c.id, coalesce(p.id, c.parent_id) AS parent_id, c.metadata, c.writes, c.body
FROM checkpoints c LEFT JOIN checkpoints p ON p.thread_id = c.thread_id AND p.ns = c.ns AND p.n = c.parent_n
WHERE hashtextextended(c.thread_id, 0) = hashtextextended(:thread_id, 0) AND c.ns = :ns AND c.id = :id
  AND c.thread_id || '' = :thread_id;

-- name: select_checkpoints_of_ns
SELECT c.thread_id, c.ns, c.n, c.id, coalesce(p.id, c.parent_id) AS parent_id, c.metadata, c.writes, c.body
FROM checkpoints c JOIN threads t ON t.id = c.thread_id AND t.user_id = :user_id
    LEFT JOIN checkpoints p ON p.thread_id = c.thread_id AND p.ns = c.ns AND p.n = c.parent_n
WHERE hashtextextended(c.thread_id, 0) = hashtextextended(:thread_id, 0) AND c.ns = :ns AND c.id < :before
  AND c.thread_id || '' = :thread_id
ORDER BY c.id DESC LIMIT :limit;

-- name: select_checkpoints_with_metadata
-- By its index, and with those whose metadata PostgreSQL cannot read as JSON.
SELECT c.id, c.ns, c.thread_id, c.metadata
FROM checkpoints c JOIN threads t ON t.id = c.thread_id AND t.user_id = :user_id
WHERE (as_jsonb(c.metadata) @> CAST(:contained AS JSONB) OR as_jsonb(c.metadata) @> '"unreadable"')
  AND c.metadata > ':' AND strpos(c.metadata, :part) > 0
  AND (CAST(:thread_id AS TEXT) IS NULL OR c.thread_id = :thread_id)
  AND (CAST(:ns AS TEXT) IS NULL OR c.ns = :ns) AND c.id < :before;
