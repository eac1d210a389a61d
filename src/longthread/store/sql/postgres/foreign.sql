-- name: foreign_unreadable
SELECT relname AS name FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT has_table_privilege(oid, 'SELECT')
ORDER BY relname COLLATE "C";

-- name: foreign_values
-- What a checkpoint's channels hold and its tasks have written, each as it is stored.
SELECT b.channel, b.type, b.blob AS value FROM checkpoints c
    JOIN checkpoint_blobs b ON b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns
        AND b.version = c.checkpoint -> 'channel_versions' ->> b.channel
WHERE c.thread_id = :thread_id AND c.checkpoint_ns = :ns AND c.checkpoint_id = :id
UNION ALL
SELECT channel, type, blob FROM checkpoint_writes
WHERE thread_id = :thread_id AND checkpoint_ns = :ns AND checkpoint_id = :id;
