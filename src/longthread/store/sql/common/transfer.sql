-- name: select_thread_ids
-- Behind :after, or from the first on, which may be the empty one.
SELECT id FROM threads
WHERE id >= coalesce(CAST(:after AS TEXT), '') AND (CAST(:after AS TEXT) IS NULL OR id > :after)
  AND (CAST(:user_id AS TEXT) IS NULL OR user_id = :user_id)
ORDER BY id
LIMIT :limit;

-- name: count_threads
SELECT count(*) AS threads FROM threads WHERE CAST(:user_id AS TEXT) IS NULL OR user_id = :user_id;

-- name: select_owner
SELECT user_id FROM threads WHERE id = :id;
