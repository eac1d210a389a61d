-- name: select_leases
SELECT r.id
FROM json_each(:leases) l
CROSS JOIN runs r ON r.thread_id = json_extract(l.value, '$[0]') AND r.id = json_extract(l.value, '$[1]')
WHERE r.owner = json_extract(l.value, '$[2]') AND r.attempt = json_extract(l.value, '$[3]') AND r.status = 'running';

-- name: insert_texts
INSERT INTO events (thread_id, run_id, seq, type, data, at)
SELECT json_extract(e.value, '$[0]'), json_extract(e.value, '$[1]'), json_extract(e.value, '$[2]'), 'text',
       json_extract(e.value, '$[3]'), json_extract(e.value, '$[4]')
FROM json_each(:texts) e WHERE true
ON CONFLICT (thread_id, run_id, seq) DO NOTHING;

-- name: claim_runs
-- Gives a worker runs that nobody executes, the oldest first, each with what to do with it.
UPDATE runs
SET owner = :owner, attempt = attempt + 1, steps_before = -1,
    crashes = CASE WHEN steps_before >= 0
                        AND (SELECT count(*) FROM steps s WHERE s.thread_id = runs.thread_id AND s.run_id = runs.id
                             AND s.idx >= runs.first_step AND s.status = 'done') > steps_before
                   THEN 0 ELSE crashes END
              + CASE WHEN owner IS NULL OR steps_before < 0 THEN 0 ELSE 1 END
WHERE (thread_id, id) IN (
    SELECT r.thread_id, r.id FROM runs r JOIN threads t ON t.id = r.thread_id
    WHERE r.status = 'running' AND r.waiting_since IS NULL AND r.claimable
      AND (r.owner IS NULL OR r.owner NOT IN (SELECT id FROM workers))
      AND NOT EXISTS (SELECT 1 FROM runs p WHERE p.thread_id = t.parent_thread_id AND p.id = r.parent_run_id
                      AND p.status = 'running')
    ORDER BY r.started_at LIMIT :limit
)
RETURNING thread_id, id, attempt, crashes, stop_by,
          (SELECT t.user_id FROM threads t WHERE t.id = runs.thread_id) AS user_id;
