-- name: put_checkpoint
INSERT INTO checkpoints (thread_id, ns, id, parent_id, type, body, metadata)
VALUES (:thread_id, :ns, :id, :parent_id, :type, :body, :metadata)
ON CONFLICT (thread_id, ns, id) DO UPDATE
SET parent_id = excluded.parent_id, type = excluded.type, body = excluded.body, metadata = excluded.metadata;

-- name: put_channel
INSERT INTO checkpoint_channels (thread_id, ns, channel, version, type, body)
VALUES (:thread_id, :ns, :channel, :version, :type, :body)
ON CONFLICT (thread_id, ns, channel, version) DO UPDATE SET type = excluded.type, body = excluded.body;

-- name: put_write
INSERT INTO checkpoint_writes (thread_id, ns, checkpoint_id, task_id, idx, task_path, channel, type, body)
VALUES (:thread_id, :ns, :checkpoint_id, :task_id, :idx, :task_path, :channel, :type, :body)
ON CONFLICT (thread_id, ns, checkpoint_id, task_id, idx) DO NOTHING;

-- name: replace_write
INSERT INTO checkpoint_writes (thread_id, ns, checkpoint_id, task_id, idx, task_path, channel, type, body)
VALUES (:thread_id, :ns, :checkpoint_id, :task_id, :idx, :task_path, :channel, :type, :body)
ON CONFLICT (thread_id, ns, checkpoint_id, task_id, idx) DO UPDATE
SET task_path = excluded.task_path, channel = excluded.channel, type = excluded.type, body = excluded.body;

-- name: select_checkpoint
SELECT c.* FROM checkpoints c JOIN threads t ON t.id = c.thread_id AND t.user_id = :user_id
WHERE c.thread_id = :thread_id AND c.ns = :ns AND c.id = :id;

-- name: select_latest_checkpoint
SELECT c.* FROM checkpoints c JOIN threads t ON t.id = c.thread_id AND t.user_id = :user_id
WHERE c.thread_id = :thread_id AND c.ns = :ns
ORDER BY c.id DESC LIMIT 1;

-- name: select_checkpoints
SELECT c.* FROM checkpoints c JOIN threads t ON t.id = c.thread_id AND t.user_id = :user_id
WHERE (:thread_id IS NULL OR c.thread_id = :thread_id) AND (:ns IS NULL OR c.ns = :ns)
  AND (:before IS NULL OR c.id < :before)
ORDER BY c.id DESC;

-- name: select_channel
SELECT channel, version, type, body FROM checkpoint_channels
WHERE thread_id = :thread_id AND ns = :ns AND channel = :channel AND version = :version;

-- name: select_writes
SELECT * FROM checkpoint_writes
WHERE thread_id = :thread_id AND ns = :ns AND checkpoint_id = :checkpoint_id
ORDER BY task_path, task_id, idx;
