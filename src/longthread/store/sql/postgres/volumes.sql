-- name: lock_threads
SELECT id FROM threads WHERE id IN (SELECT json_array_elements_text(CAST(:threads AS JSON)))
ORDER BY id FOR NO KEY UPDATE;

-- name: select_all_postings
-- None of another user's, here and below.
SELECT p.thread_id, p.segment, p.data
FROM json_array_elements_text(CAST(:threads AS JSON)) r (id)
    JOIN threads t ON t.id = r.id AND t.user_id = :user_id
    JOIN recall_postings p ON p.thread_id = t.id
ORDER BY p.thread_id, p.segment;

-- name: select_postings_of_threads bulky
SELECT p.thread_id, p.segment, p.bucket, p.data
FROM json_array_elements_text(CAST(:threads AS JSON)) r (id)
    JOIN threads t ON t.id = r.id AND t.user_id = :user_id
    JOIN recall_postings p ON p.thread_id = t.id
WHERE p.bucket = ANY(CAST(translate(:buckets, '[]', '{}') AS BIGINT[]))
ORDER BY p.thread_id, p.segment, p.bucket;
