-- name: foreign_checkpoints
SELECT c.checkpoint_ns AS ns, c.checkpoint_id AS id, c.parent_checkpoint_id AS parent,
       (SELECT count(*) FROM writes w
        WHERE w.thread_id = c.thread_id AND w.checkpoint_ns = c.checkpoint_ns AND w.checkpoint_id = c.checkpoint_id
       ) AS writes
FROM checkpoints c WHERE c.thread_id = :thread_id;

-- name: foreign_paths
SELECT DISTINCT task_id, task_path FROM writes
WHERE thread_id = :thread_id AND checkpoint_ns = :ns AND checkpoint_id = :id;

-- name: foreign_values
-- All channels' values are one, the checkpoint.
SELECT '' AS channel, type, checkpoint AS value FROM checkpoints
WHERE thread_id = :thread_id AND checkpoint_ns = :ns AND checkpoint_id = :id
UNION ALL
SELECT channel, type, value FROM writes
WHERE thread_id = :thread_id AND checkpoint_ns = :ns AND checkpoint_id = :id;
