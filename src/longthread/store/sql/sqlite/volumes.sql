-- name: lock_threads
SELECT id FROM threads WHERE id IN (SELECT value FROM json_each(:threads));

-- name: select_all_postings
-- None of another user's, here and below.
SELECT p.thread_id, p.segment, p.data FROM json_each(:threads) r CROSS JOIN threads t CROSS JOIN recall_postings p
WHERE t.id = r.value AND t.user_id = :user_id AND p.thread_id = t.id
ORDER BY p.thread_id, p.segment;

-- name: select_postings_of_threads
SELECT p.thread_id, p.segment, p.bucket, p.data
FROM json_each(:threads) r CROSS JOIN threads t CROSS JOIN recall_postings p
WHERE t.id = r.value AND t.user_id = :user_id AND p.thread_id = t.id
  AND p.bucket IN (SELECT value FROM json_each(:buckets))
ORDER BY p.thread_id, p.segment, p.bucket;
