-- name: insert_vector
INSERT INTO memory_vectors (id, thread_id, seq, chunk, model, embedding)
VALUES (:id, :thread_id, :seq, :chunk, :model, :embedding)
ON CONFLICT (id) DO NOTHING;

-- name: count_vectors
SELECT 0 AS vectors, 0 AS indexed;

-- name: select_near_vectors
SELECT thread_id, seq, embedding FROM memory_vectors
WHERE model = :model AND seq IS NOT NULL AND length(embedding) = 4 * :dims AND thread_id IN (
      SELECT t.id FROM threads t
      WHERE t.user_id = :user_id AND (CAST(:thread_id AS TEXT) IS NULL OR t.id = :thread_id)
        AND (CAST(:agent_id AS TEXT) IS NULL OR t.agent_id = :agent_id)
  );
