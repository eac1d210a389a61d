-- name: select_memory_that_says
-- Locked: nobody else changes it before this transaction has.
SELECT id, session_id, source_deleted_at, content FROM memories
WHERE user_id = :user_id AND agent_id = CAST(:agent_id AS UUID) AND said = :said
FOR UPDATE;

-- name: select_near_memories
SELECT id, NULL AS numbers, -(numbers <#> CAST(:text AS VECTOR)) AS cosine FROM memories
WHERE user_id = :user_id AND (CAST(:agent_id AS TEXT) IS NULL OR CAST(agent_id AS TEXT) = :agent_id)
  AND model = :model AND vector_dims(numbers) = :dims
  AND (expires_at IS NULL OR expires_at > CAST(:now AS TIMESTAMPTZ));

-- name: select_memories_without_vector
SELECT id, content FROM memories
WHERE user_id = :user_id AND (model IS NULL OR model <> :model)
  AND id > CAST(coalesce(NULLIF(:after, ''), '00000000-0000-0000-0000-000000000000') AS UUID)
ORDER BY id LIMIT :limit;

-- name: put_memory_vector
-- Of the words that were embedded, and no others: they may have changed, or be gone.
UPDATE memories
SET model = :model, numbers = CAST(:text AS VECTOR),
    embedding = CASE WHEN octet_length(CAST(:data AS BYTEA)) = 6144 THEN CAST(:text AS VECTOR)
                     WHEN model IS NULL THEN embedding END
WHERE id = :id AND content = :content;

-- name: put_memory_use
-- Locked: it is either gone already, or its deletion waits, and takes this row along.
INSERT INTO memory_uses (session_id, run_id, memory_id, how, place, shown)
SELECT :thread_id, :run_id, m.id, :how, :place, :shown FROM memories m WHERE m.id = :memory_id
FOR KEY SHARE
ON CONFLICT (session_id, run_id, memory_id) DO NOTHING;
