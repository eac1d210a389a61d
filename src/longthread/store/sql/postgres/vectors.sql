-- name: insert_vector
INSERT INTO memory_vectors (id, thread_id, seq, chunk, model, embedding, topics)
VALUES (:id, :thread_id, :seq, :chunk, :model, CAST(:numbers AS VECTOR), ARRAY(
    SELECT DISTINCT s.topic FROM memory_topic_spans s
    WHERE s.thread_id = :thread_id AND CAST(:seq AS BIGINT) BETWEEN s.first_seq AND s.last_seq ORDER BY s.topic))
ON CONFLICT (id) DO NOTHING;

-- name: select_vectors_between bulky
-- In no order: the database would carry the vectors about while it sorts.
SELECT v.thread_id, v.seq, vector_send(v.embedding) AS embedding, 1 AS sent
FROM json_array_elements(CAST(:ranges AS JSON)) r JOIN memory_vectors v
  ON v.thread_id = r.value ->> 0 AND v.model = :model AND v.seq IS NOT NULL
  AND v.seq BETWEEN CAST(r.value ->> 1 AS BIGINT) AND CAST(r.value ->> 2 AS BIGINT);

-- name: select_vectors_at bulky
SELECT v.thread_id, v.seq, vector_send(v.embedding) AS embedding, 1 AS sent FROM memory_vectors v
WHERE v.thread_id = :thread_id AND v.model = :model AND v.seq IS NOT NULL
  AND v.seq = ANY(CAST(translate(:seqs, '[]', '{}') AS BIGINT[]));

-- name: has_vector_index
SELECT 1 AS has;

-- name: search_on
SELECT set_config('hnsw.iterative_scan', 'strict_order', TRUE), set_config('hnsw.ef_search', '200', TRUE),
       set_config('hnsw.max_scan_tuples', '200000', TRUE);

-- name: select_near_vectors
-- The number of dimensions must stand in it as such, for each has an index of its own; this one is put in the place of 1536.
SELECT thread_id, seq, vector_send(embedding) AS embedding, 1 AS sent
FROM memory_vectors
WHERE model = :model AND seq IS NOT NULL AND vector_dims(embedding) = 1536 AND thread_id IN (
      SELECT t.id FROM threads t
      WHERE t.user_id = :user_id AND (CAST(:thread_id AS TEXT) IS NULL OR t.id = :thread_id)
        AND (CAST(:agent_id AS TEXT) IS NULL OR coalesce(t.agent_id, '6c6f6e67-7468-5265-8164-616e616c7973') = :agent_id)
  )
ORDER BY CAST(embedding AS VECTOR(1536)) <=> CAST(:numbers AS VECTOR(1536)) LIMIT :limit;

-- name: select_signature_stamps
-- One value, whatever there is: it is asked for with each question, and is mostly what it was before.
SELECT coalesce(string_agg(s.block || '/' || s.stamp, ' ' ORDER BY s.block), '') AS stamps
FROM recall_signatures s
WHERE s.thread_id = :thread_id AND s.model = :model
  AND EXISTS (SELECT 1 FROM threads t WHERE t.id = :thread_id AND t.user_id = :user_id)
  AND substr(s.stamp, 1, 2) = '2:';

-- name: select_signature_stamps_of_user
SELECT coalesce(string_agg(s.thread_id || '/' || s.block || '/' || s.stamp, ' ' ORDER BY s.thread_id, s.block), '') AS stamps
FROM threads t JOIN recall_signatures s ON s.thread_id = t.id
WHERE t.user_id = :user_id
  AND (CAST(:agent_id AS TEXT) IS NULL OR coalesce(t.agent_id, '6c6f6e67-7468-5265-8164-616e616c7973') = :agent_id)
  AND s.model = :model
  AND substr(s.stamp, 1, 2) = '2:';

-- name: count_vector_columns
SELECT count(*) AS found
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = to_regclass('memory_vectors') AND a.attname = 'embedding' AND t.typname = 'vector';
