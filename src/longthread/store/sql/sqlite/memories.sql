-- name: select_near_memories
SELECT id, numbers, NULL AS cosine FROM memories
WHERE user_id = :user_id AND (CAST(:agent_id AS TEXT) IS NULL OR agent_id = :agent_id)
  AND model = :model AND length(numbers) = 4 * :dims
  AND (expires_at IS NULL OR julianday(expires_at) > julianday(:now));

-- name: select_memories_without_vector
SELECT id, content FROM memories
WHERE user_id = :user_id AND (model IS NULL OR model <> :model) AND id > :after
ORDER BY id LIMIT :limit;

-- name: put_memory_vector
-- Of the words that were embedded, and no others: they may have changed, or be gone.
UPDATE memories
SET model = :model, numbers = :data,
    embedding = CASE WHEN length(:data) = 6144 THEN :data WHEN model IS NULL THEN embedding END
WHERE id = :id AND content = :content;

-- name: put_memory_use
INSERT INTO memory_uses (session_id, run_id, memory_id, how, place, shown)
SELECT :thread_id, :run_id, m.id, :how, :place, :shown FROM memories m WHERE m.id = :memory_id
ON CONFLICT (session_id, run_id, memory_id) DO NOTHING;
