-- name: insert_worker
INSERT INTO workers (id, started_at, renewals) VALUES (:id, :now, 0);

-- name: renew_worker
UPDATE workers SET renewals = renewals + 1 WHERE id = :id;

-- name: select_workers
SELECT id, renewals FROM workers;

-- name: delete_worker
DELETE FROM workers WHERE id = :id;

-- name: delete_silent_worker
-- Unless it has renewed its row meanwhile.
DELETE FROM workers WHERE id = :id AND renewals = :renewals;

-- name: select_held_runs
SELECT thread_id, id, attempt, stop_by FROM runs
WHERE owner = :owner AND status = 'running' AND waiting_since IS NULL;

-- name: select_claimable
-- Whether a run waits for a worker. An agent that called another claims that one's run itself.
SELECT 1 AS found FROM runs r
WHERE r.status = 'running' AND r.waiting_since IS NULL AND r.claimable
  AND (r.owner IS NULL OR r.owner NOT IN (SELECT id FROM workers))
  AND NOT EXISTS (SELECT 1 FROM threads c JOIN runs p ON p.thread_id = c.parent_thread_id AND p.id = r.parent_run_id
                  WHERE c.id = r.thread_id AND p.status = 'running')
LIMIT 1;
