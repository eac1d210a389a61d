-- name: select_volume_members
SELECT id, members FROM recall_volumes
WHERE user_id = :user_id AND id IN (SELECT json_array_elements_text(CAST(:volumes AS JSON)));

-- name: select_volume_postings bulky
SELECT volume, bucket, data FROM recall_volume_postings
WHERE user_id = :user_id AND bucket = ANY(CAST(translate(:buckets, '[]', '{}') AS BIGINT[]))
ORDER BY volume, bucket;

-- name: select_bindable_threads
SELECT t.id, coalesce(t.agent_id, '6c6f6e67-7468-5265-8164-616e616c7973') AS agent_id, t.first_seq, t.entry_count,
       t.incarnation, b.volume
FROM threads t LEFT JOIN recall_bound b ON b.thread_id = t.id
WHERE t.user_id = :user_id AND t.id IN (SELECT json_array_elements_text(CAST(:threads AS JSON)))
ORDER BY t.id;

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

-- name: select_tips
SELECT id, tip, entry_count FROM threads
WHERE user_id = :user_id AND id IN (SELECT json_array_elements_text(CAST(:threads AS JSON)));
