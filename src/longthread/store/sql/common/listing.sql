-- name: latest_runs
SELECT r.thread_id, r.status, w.id AS held_by, r.waiting_since
FROM threads t
JOIN runs r ON r.thread_id = t.id AND r.id = (SELECT max(x.id) FROM runs x WHERE x.thread_id = t.id)
LEFT JOIN workers w ON w.id = r.owner
WHERE t.user_id = :user_id AND t.updated_at BETWEEN :first AND :last;
