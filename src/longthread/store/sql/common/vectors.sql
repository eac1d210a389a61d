-- name: count_missing_vectors
SELECT count(*) AS missing FROM entries e
WHERE e.thread_id = :thread_id AND NOT EXISTS (
    SELECT 1 FROM memory_vectors v WHERE v.thread_id = :thread_id AND v.model = :model AND v.seq = e.seq
);

-- name: select_missing_vectors
SELECT e.seq FROM entries e
WHERE e.thread_id = :thread_id AND e.seq > :after AND NOT EXISTS (
    SELECT 1 FROM memory_vectors v WHERE v.thread_id = :thread_id AND v.model = :model AND v.seq = e.seq
)
ORDER BY e.seq
LIMIT :limit;

-- name: select_other_vectors
SELECT v.id FROM memory_vectors v
WHERE v.thread_id = :thread_id AND v.seq IS NOT NULL AND v.model <> :model LIMIT 1;

-- name: delete_other_vectors
DELETE FROM memory_vectors WHERE thread_id = :thread_id AND seq IS NOT NULL AND model <> :model;
