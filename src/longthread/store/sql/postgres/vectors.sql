-- name: insert_vector
INSERT INTO memory_vectors (id, thread_id, seq, chunk, model, embedding)
VALUES (:id, :thread_id, :seq, :chunk, :model, CAST(:numbers AS VECTOR))
ON CONFLICT (id) DO NOTHING;

-- name: count_vectors
SELECT count(*) AS vectors, 1 AS indexed FROM memory_vectors
WHERE model = :model AND seq IS NOT NULL AND thread_id IN (
      SELECT t.id FROM threads t
      WHERE t.user_id = :user_id AND (CAST(:thread_id AS TEXT) IS NULL OR t.id = :thread_id)
        AND (CAST(:agent_id AS TEXT) IS NULL OR t.agent_id = :agent_id)
  );

-- name: select_near_vectors
-- Taken out first: the index would be asked for the nearest of all users' vectors, and may not reach these.
WITH scoped AS MATERIALIZED (
    SELECT thread_id, seq, embedding FROM memory_vectors
    WHERE model = :model AND seq IS NOT NULL AND vector_dims(embedding) = :dims AND thread_id IN (
      SELECT t.id FROM threads t
      WHERE t.user_id = :user_id AND (CAST(:thread_id AS TEXT) IS NULL OR t.id = :thread_id)
        AND (CAST(:agent_id AS TEXT) IS NULL OR t.agent_id = :agent_id)
  )
)
SELECT thread_id, seq, vector_send(embedding) AS embedding
FROM scoped ORDER BY embedding <=> CAST(:numbers AS VECTOR), thread_id, seq LIMIT :limit;

-- name: search_on
-- The index goes on until it has found enough of those that are asked for.
SET LOCAL hnsw.iterative_scan = strict_order;

-- name: select_near_vectors_indexed
-- The number of dimensions must stand in it as such, for each has an index of its own; this one is put in the place of 1536.
SELECT thread_id, seq, vector_send(embedding) AS embedding
FROM memory_vectors
WHERE model = :model AND seq IS NOT NULL AND vector_dims(embedding) = 1536 AND thread_id IN (
      SELECT t.id FROM threads t
      WHERE t.user_id = :user_id AND (CAST(:thread_id AS TEXT) IS NULL OR t.id = :thread_id)
        AND (CAST(:agent_id AS TEXT) IS NULL OR t.agent_id = :agent_id)
  )
ORDER BY CAST(embedding AS VECTOR(1536)) <=> CAST(:numbers AS VECTOR(1536)) LIMIT :limit;
