-- name: insert_vector
INSERT INTO memory_vectors (id, thread_id, seq, chunk, model, embedding)
VALUES (:id, :thread_id, :seq, :chunk, :model, :embedding)
ON CONFLICT (id) DO NOTHING;

-- name: select_vectors_between
-- In no order: the database would carry the vectors about while it sorts.
SELECT v.thread_id, v.seq, v.embedding, 0 AS sent
FROM json_each(:ranges) r CROSS JOIN memory_vectors v
WHERE v.thread_id = json_extract(r.value, '$[0]') AND v.model = :model AND v.seq IS NOT NULL
  AND v.seq BETWEEN json_extract(r.value, '$[1]') AND json_extract(r.value, '$[2]');

-- name: select_vectors_at
-- Not also `seq IS NOT NULL`: for that, SQLite would go through all of the thread's.
SELECT v.thread_id, v.seq, v.embedding, 0 AS sent FROM memory_vectors v
WHERE v.thread_id = :thread_id AND v.model = :model AND v.seq IN (SELECT value FROM json_each(:seqs));

-- name: has_vector_index
SELECT 0 AS has;
