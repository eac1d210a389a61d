-- name: select_workers
SELECT w.id, CASE WHEN l.id IS NULL THEN 0 ELSE 1 END AS lives FROM workers w LEFT JOIN living_workers l ON l.id = w.id;

-- name: delete_worker
DELETE FROM workers WHERE id = :id;

-- name: delete_dead_workers
DELETE FROM workers WHERE id NOT IN (SELECT id FROM living_workers);

-- name: select_held_runs
SELECT thread_id, id, attempt, stop_by FROM runs
WHERE owner = :owner AND status = 'running' AND waiting_since IS NULL;

-- name: select_claimable
-- Whether a run waits for a worker. An agent that called another claims that one's run itself.
SELECT 1 AS found FROM runs r
WHERE r.status = 'running' AND r.waiting_since IS NULL AND r.claimable
  AND (r.owner IS NULL OR r.owner NOT IN (SELECT id FROM living_workers))
  AND NOT EXISTS (SELECT 1 FROM threads c JOIN runs p ON p.thread_id = c.parent_thread_id AND p.id = r.parent_run_id
                  WHERE c.id = r.thread_id AND p.status = 'running')
LIMIT 1;
