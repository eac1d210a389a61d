-- name: insert_vector
INSERT INTO memory_vectors (id, thread_id, seq, chunk, model, embedding, topics)
VALUES (:id, :thread_id, :seq, :chunk, :model, :embedding, (
    SELECT json_group_array(topic) FROM (
        SELECT DISTINCT s.topic FROM memory_topic_spans s
        WHERE s.thread_id = :thread_id AND :seq BETWEEN s.first_seq AND s.last_seq ORDER BY s.topic)))
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

-- name: select_signature_stamps
-- One value, whatever there is: it is asked for with each question, and is mostly what it was before. SQLite puts it
-- together in the order of the key; were it another one, the signatures would be looked at again.
SELECT coalesce(group_concat(s.block || '/' || s.stamp, ' '), '') AS stamps
FROM recall_signatures s
WHERE s.thread_id = :thread_id AND s.model = :model
  AND EXISTS (SELECT 1 FROM threads t WHERE t.id = :thread_id AND t.user_id = :user_id)
  AND substr(s.stamp, 1, 2) = '2:';

-- name: select_signature_stamps_of_user
SELECT coalesce(group_concat(s.thread_id || '/' || s.block || '/' || s.stamp, ' '), '') AS stamps
FROM threads t JOIN recall_signatures s ON s.thread_id = t.id
WHERE t.user_id = :user_id
  AND (CAST(:agent_id AS TEXT) IS NULL OR coalesce(t.agent_id, '6c6f6e67-7468-5265-8164-616e616c7973') = :agent_id)
  AND s.model = :model
  AND substr(s.stamp, 1, 2) = '2:';
