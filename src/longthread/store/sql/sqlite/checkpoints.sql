-- name: select_checkpoints_with_metadata
-- Metadata stands before the bodies in a row, which are not read.
SELECT c.id, c.ns, c.thread_id, c.metadata
FROM checkpoints c JOIN threads t ON t.id = c.thread_id AND t.user_id = :user_id
WHERE (:thread_id IS NULL OR c.thread_id = :thread_id)
  AND (:ns IS NULL OR c.ns = :ns) AND c.id < :before AND c.metadata > ':' AND instr(c.metadata, :part) > 0;
