-- name: lock_thread
SELECT id, tip, entry_count, first_seq, incarnation, title IS NULL AS untitled
FROM threads WHERE id = :id AND user_id = :user_id;

-- name: hold_thread
SELECT 1 FROM threads WHERE id = :id AND user_id = :user_id;

-- name: select_place
-- A thread, the newest checkpoint of a namespace, the number of one if it is there, and whether tasks of another have rows.
SELECT t.id, t.tip, t.entry_count, t.first_seq, t.incarnation, t.title IS NULL AS untitled,
       h.n AS head_n, h.id AS head_id, h.writes AS head_writes,
       (SELECT c.n FROM checkpoints c WHERE c.thread_id = :id AND c.ns = :ns AND c.id = :checkpoint_id) AS there,
       EXISTS (SELECT 1 FROM checkpoint_writes w
               WHERE w.thread_id = :id AND w.ns = :ns AND w.checkpoint_id = :written_id) AS tasks
FROM threads t LEFT JOIN checkpoints h ON h.thread_id = :id AND h.ns = :ns AND h.n = (
    SELECT max(n) FROM checkpoints WHERE thread_id = :id AND ns = :ns
)
WHERE t.id = :id AND t.user_id = :user_id;

-- name: hold_known_place
-- One row if a thread, which is locked, and the newest checkpoint of a namespace are these, and no task of one has rows.
-- Whoever writes to SQLite has locked all of it.
SELECT 1 AS found FROM threads t
WHERE t.id = :id AND t.user_id = :user_id AND t.tip = :tip AND t.entry_count = :size AND t.first_seq = :first_seq
  AND t.incarnation = :incarnation AND :head = (
    SELECT h.n || ' ' || h.writes || ' ' || h.id FROM checkpoints h
    WHERE h.thread_id = :id AND h.ns = :ns ORDER BY h.n DESC LIMIT 1
) AND NOT EXISTS (
    SELECT 1 FROM checkpoint_writes w WHERE w.thread_id = :id AND w.ns = :ns AND w.checkpoint_id = :written_id
);

-- name: grow_thread
-- Times are in an index: one that is newer by less than a moment is not worth another entry in it.
UPDATE threads SET tip = :tip, entry_count = :entry_count, title = coalesce(title, CAST(:title AS TEXT)),
                   updated_at = CASE WHEN updated_at < :recent THEN :now ELSE updated_at END
WHERE id = :id;

-- name: grow_active_thread
UPDATE threads SET tip = :tip, entry_count = :entry_count WHERE id = :id;

-- name: renew_thread
UPDATE threads SET incarnation = :incarnation WHERE id = :thread_id;

-- name: insert_checkpoint
INSERT INTO checkpoints (thread_id, ns, n, parent_n, id, parent_id, metadata, body)
VALUES (:thread_id, :ns, :n, :parent_n, :id, :parent_id, :metadata, :body);

-- name: rewrite_checkpoint
UPDATE checkpoints SET body = :body, writes = :writes WHERE thread_id = :thread_id AND ns = :ns AND n = :n;

-- name: replace_checkpoint
UPDATE checkpoints SET parent_n = :parent_n, parent_id = :parent_id, metadata = :metadata, body = :body, writes = 0
WHERE thread_id = :thread_id AND ns = :ns AND n = :n;

-- name: update_checkpoint_body
UPDATE checkpoints SET body = :body, writes = :writes
WHERE thread_id = :thread_id AND ns = :ns AND n = :n AND id = :id AND writes = :before;

-- name: put_blob
INSERT INTO checkpoint_blobs (thread_id, ns, n, channel, body) VALUES (:thread_id, :ns, :n, :channel, :body)
ON CONFLICT (thread_id, ns, n, channel) DO UPDATE SET body = excluded.body;

-- name: delete_blob
DELETE FROM checkpoint_blobs WHERE thread_id = :thread_id AND ns = :ns AND n = :n AND channel = :channel;

-- name: select_blob
SELECT body FROM checkpoint_blobs WHERE thread_id = :thread_id AND ns = :ns AND n = :n AND channel = :channel;

-- name: select_blob_names
SELECT n, channel FROM checkpoint_blobs WHERE thread_id = :thread_id AND ns = :ns;

-- name: insert_writes
INSERT INTO checkpoint_writes (thread_id, ns, checkpoint_id, task_id, task_path, writes, body)
VALUES (:thread_id, :ns, :checkpoint_id, :task_id, :task_path, :writes, :body);

-- name: replace_writes
UPDATE checkpoint_writes SET writes = :writes, body = :body
WHERE thread_id = :thread_id AND ns = :ns AND checkpoint_id = :checkpoint_id AND task_id = :task_id;

-- name: delete_writes
DELETE FROM checkpoint_writes
WHERE thread_id = :thread_id AND ns = :ns AND checkpoint_id = :checkpoint_id AND task_id = :task_id;

-- name: delete_writes_of
DELETE FROM checkpoint_writes WHERE thread_id = :thread_id AND ns = :ns AND checkpoint_id = :checkpoint_id;

-- name: select_writes_of
SELECT ns, checkpoint_id, task_id, task_path, writes, body FROM checkpoint_writes
WHERE thread_id = :thread_id AND ns = :ns AND checkpoint_id = :checkpoint_id;

-- name: select_writes_of_task
SELECT ns, checkpoint_id, task_id, task_path, writes, body FROM checkpoint_writes
WHERE thread_id = :thread_id AND ns = :ns AND checkpoint_id = :checkpoint_id AND task_id = :task_id;

-- name: select_writes_of_newest
SELECT ns, checkpoint_id, task_id, task_path, writes, body FROM checkpoint_writes
WHERE thread_id = :thread_id AND ns = :ns AND checkpoint_id = (
    SELECT id FROM checkpoints WHERE thread_id = :thread_id AND ns = :ns ORDER BY n DESC LIMIT 1
);

-- name: select_writes
SELECT ns, checkpoint_id, task_id, task_path, writes, body FROM checkpoint_writes
WHERE thread_id = :thread_id AND ns = :ns AND checkpoint_id >= :first AND checkpoint_id <= :last;

-- name: select_checkpoint
SELECT c.thread_id, c.ns, c.n, c.id, coalesce(p.id, c.parent_id) AS parent_id, c.metadata, c.writes, c.body
FROM checkpoints c LEFT JOIN checkpoints p ON p.thread_id = c.thread_id AND p.ns = c.ns AND p.n = c.parent_n
WHERE c.thread_id = :thread_id AND c.ns = :ns AND c.id = :id;

-- name: select_newest_checkpoint
SELECT c.thread_id, c.ns, c.n, c.id, coalesce(p.id, c.parent_id) AS parent_id, c.metadata, c.writes, c.body
FROM checkpoints c LEFT JOIN checkpoints p ON p.thread_id = c.thread_id AND p.ns = c.ns AND p.n = c.parent_n
WHERE c.thread_id = :thread_id AND c.ns = :ns ORDER BY c.n DESC LIMIT 1;

-- name: select_checkpoints_of_ns
SELECT c.thread_id, c.ns, c.n, c.id, coalesce(p.id, c.parent_id) AS parent_id, c.metadata, c.writes, c.body
FROM checkpoints c JOIN threads t ON t.id = c.thread_id AND t.user_id = :user_id
    LEFT JOIN checkpoints p ON p.thread_id = c.thread_id AND p.ns = c.ns AND p.n = c.parent_n
WHERE c.thread_id = :thread_id AND c.ns = :ns AND c.id < :before
ORDER BY c.id DESC LIMIT :limit;

-- name: select_checkpoints_of_thread
SELECT c.thread_id, c.ns, c.n, c.id, coalesce(p.id, c.parent_id) AS parent_id, c.metadata, c.writes, c.body
FROM checkpoints c JOIN threads t ON t.id = c.thread_id AND t.user_id = :user_id
    LEFT JOIN checkpoints p ON p.thread_id = c.thread_id AND p.ns = c.ns AND p.n = c.parent_n
WHERE c.thread_id = :thread_id AND c.id < :before AND (c.id, c.ns) < (:after_id, :after_ns)
ORDER BY c.id DESC, c.ns DESC LIMIT :limit;

-- name: select_checkpoints_of_user
SELECT c.thread_id, c.ns, c.n, c.id, coalesce(p.id, c.parent_id) AS parent_id, c.metadata, c.writes, c.body
FROM checkpoints c JOIN threads t ON t.id = c.thread_id AND t.user_id = :user_id
    LEFT JOIN checkpoints p ON p.thread_id = c.thread_id AND p.ns = c.ns AND p.n = c.parent_n
WHERE c.id < :before AND (c.id, c.ns, c.thread_id) < (:after_id, :after_ns, :after_thread)
ORDER BY c.id DESC, c.ns DESC, c.thread_id DESC LIMIT :limit;

-- name: select_usual_checkpoints
SELECT c.id, c.ns, c.thread_id, c.metadata
FROM checkpoints c JOIN threads t ON t.id = c.thread_id AND t.user_id = :user_id
WHERE (CAST(:thread_id AS TEXT) IS NULL OR c.thread_id = :thread_id)
  AND (CAST(:ns AS TEXT) IS NULL OR c.ns = :ns) AND c.id < :before AND c.metadata < ':';

-- name: select_checkpoints_down
SELECT c.thread_id, c.ns, c.n, c.id, coalesce(p.id, c.parent_id) AS parent_id, c.metadata, c.writes, c.body
FROM checkpoints c LEFT JOIN checkpoints p ON p.thread_id = c.thread_id AND p.ns = c.ns AND p.n = c.parent_n
WHERE c.thread_id = :thread_id AND c.ns = :ns AND c.n < :n ORDER BY c.n DESC LIMIT :limit;

-- name: select_namespaces
SELECT DISTINCT ns FROM checkpoints WHERE thread_id = :thread_id
UNION SELECT DISTINCT ns FROM checkpoint_writes WHERE thread_id = :thread_id
ORDER BY ns;

-- name: delete_checkpoint
-- The number may be another's by now: that of the newest one is given out again when it is gone.
DELETE FROM checkpoints WHERE thread_id = :thread_id AND ns = :ns AND n = :n AND id = :id;

-- name: forget_lost_parents
UPDATE checkpoints SET parent_n = NULL
WHERE thread_id = :thread_id AND ns = :ns AND parent_n IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM checkpoints p
    WHERE p.thread_id = checkpoints.thread_id AND p.ns = checkpoints.ns AND p.n = checkpoints.parent_n
);

-- name: delete_ns_checkpoints
DELETE FROM checkpoints WHERE thread_id = :thread_id AND ns = :ns;

-- name: delete_ns_writes
DELETE FROM checkpoint_writes WHERE thread_id = :thread_id AND ns = :ns;

-- name: delete_ns_blobs
DELETE FROM checkpoint_blobs WHERE thread_id = :thread_id AND ns = :ns;

-- name: select_threads_of_run
SELECT DISTINCT c.thread_id FROM checkpoints c JOIN threads t ON t.id = c.thread_id AND t.user_id = :user_id
WHERE c.metadata LIKE :pattern ESCAPE '\'
ORDER BY c.thread_id;

-- name: select_checkpoints_of_run
SELECT c.thread_id, c.ns, c.n, c.id, coalesce(p.id, c.parent_id) AS parent_id, c.metadata, c.writes, c.body
FROM checkpoints c LEFT JOIN checkpoints p ON p.thread_id = c.thread_id AND p.ns = c.ns AND p.n = c.parent_n
WHERE c.thread_id = :thread_id AND c.metadata LIKE :pattern ESCAPE '\'
ORDER BY c.ns, c.n;

-- name: select_messages
SELECT e.seq, e.parent_seq, e.id, e.role, e.text, e.tool_calls, e.tool_call_id, e.name, e.payload, e.metadata,
       e.replaces
FROM json_each(:runs) r
JOIN entries e ON e.thread_id = :thread_id
              AND e.seq BETWEEN json_extract(r.value, '$[0]') AND json_extract(r.value, '$[1]');

-- name: select_messages_between
SELECT seq, parent_seq, id, role, text, tool_calls, tool_call_id, name, payload, metadata, replaces
FROM entries
WHERE thread_id = :thread_id AND seq BETWEEN :first AND :last ORDER BY seq;

-- name: select_messages_down
SELECT seq, parent_seq, id, role, text, tool_calls, tool_call_id, name, payload, metadata, replaces
FROM entries
WHERE thread_id = :thread_id AND seq <= :seq ORDER BY seq DESC LIMIT :limit;

-- name: copy_thread
INSERT INTO threads (id, user_id, title, source, tip, entry_count, tool_categories, tags, created_at, updated_at,
                     agent_id, status, metadata, ended_at, expires_at, first_seq)
SELECT :target, user_id, title, source, tip, entry_count, tool_categories, tags, :now, :now,
       agent_id, status, metadata, ended_at, expires_at, first_seq
FROM threads WHERE id = :source AND user_id = :user_id
ON CONFLICT DO NOTHING;

-- name: copy_entries
INSERT INTO entries (thread_id, seq, parent_seq, id, role, text, tool_calls, tool_call_id, name, payload, tokens,
                     latency_ms, run_id, metadata, created_at, replaces)
SELECT :target, seq, parent_seq, id, role, text, tool_calls, tool_call_id, name, payload, tokens, latency_ms, NULL,
       metadata, created_at, replaces
FROM entries WHERE thread_id = :source;

-- name: copy_message_metadata
INSERT INTO message_metadata (thread_id, seq, data)
SELECT :target, seq, data FROM message_metadata WHERE thread_id = :source;

-- name: copy_checkpoints
INSERT INTO checkpoints (thread_id, ns, n, parent_n, writes, id, parent_id, metadata, body)
SELECT :target, ns, n, parent_n, writes, id, parent_id, metadata, body FROM checkpoints WHERE thread_id = :source;

-- name: copy_blobs
INSERT INTO checkpoint_blobs (thread_id, ns, n, channel, body)
SELECT :target, ns, n, channel, body FROM checkpoint_blobs WHERE thread_id = :source;

-- name: copy_writes
INSERT INTO checkpoint_writes (thread_id, ns, checkpoint_id, task_id, task_path, writes, body)
SELECT :target, ns, checkpoint_id, task_id, task_path, writes, body FROM checkpoint_writes WHERE thread_id = :source;

-- name: count_checkpoints_of_threads
-- All threads of a user, also those without checkpoints.
SELECT t.id, t.entry_count - t.first_seq + 1 AS entries,
       (SELECT count(*) FROM checkpoints c WHERE c.thread_id = t.id) AS checkpoints
FROM threads t WHERE t.user_id = :user_id ORDER BY t.id;

-- name: select_users_of_langgraph
SELECT DISTINCT t.user_id FROM threads t
WHERE EXISTS (SELECT 1 FROM checkpoints c WHERE c.thread_id = t.id)
  AND t.id NOT IN (SELECT thread_id FROM pending_deletions)
UNION SELECT DISTINCT user_id FROM items ORDER BY user_id;

-- name: select_sent_ids
SELECT id, metadata FROM entries WHERE thread_id = :thread_id;
