-- name: select_lease
-- Locks the thread and then the run. Whoever changed the run did so under the thread's lock, so that both rows are the
-- newest here: a row that was changed while we waited is read again, and the conditions are checked on that.
SELECT t.tip, t.entry_count, r.told, r.started_at, r.first_step, r.stop_by
FROM threads t JOIN runs r ON r.thread_id = t.id
WHERE t.id = :thread_id AND r.id = :id AND r.owner = :owner AND r.attempt = :attempt
  AND r.status = 'running'
FOR NO KEY UPDATE;

-- name: select_leases
-- Locks as `select_lease` does, but only what is not locked: who waits here while holding locks could wait for ever.
SELECT r.id
FROM json_array_elements(CAST(:leases AS JSON)) l
JOIN threads t ON t.id = l ->> 0
JOIN runs r ON r.thread_id = t.id AND r.id = l ->> 1
WHERE r.owner = l ->> 2 AND r.attempt = CAST(l ->> 3 AS BIGINT) AND r.status = 'running'
FOR NO KEY UPDATE OF t, r SKIP LOCKED;

-- name: insert_texts
INSERT INTO events (thread_id, run_id, seq, type, data, at)
SELECT e ->> 0, e ->> 1, CAST(e ->> 2 AS BIGINT), 'text', e ->> 3, e ->> 4
FROM json_array_elements(CAST(:texts AS JSON)) e
ON CONFLICT (thread_id, run_id, seq) DO NOTHING;

-- name: claim_runs
-- Gives a worker runs that nobody executes, the oldest first, each with what to do with it. Both rows are locked, as whoever
-- writes a run does; those that another worker looks at are skipped.
UPDATE runs
SET owner = :owner, attempt = attempt + 1, steps_before = -1,
    crashes = CASE WHEN steps_before >= 0
                        AND (SELECT count(*) FROM steps s WHERE s.thread_id = runs.thread_id AND s.run_id = runs.id
                             AND s.idx >= runs.first_step AND s.status = 'done') > steps_before
                   THEN 0 ELSE crashes END
              + CASE WHEN owner IS NULL OR steps_before < 0 THEN 0 ELSE 1 END
FROM (
    SELECT r.thread_id, r.id FROM runs r JOIN threads t ON t.id = r.thread_id
    WHERE r.status = 'running' AND r.waiting_since IS NULL AND r.claimable
      AND (r.owner IS NULL OR r.owner NOT IN (SELECT id FROM workers))
      AND NOT EXISTS (SELECT 1 FROM runs p WHERE p.thread_id = t.parent_thread_id AND p.id = r.parent_run_id
                      AND p.status = 'running')
    ORDER BY r.started_at LIMIT :limit
    FOR NO KEY UPDATE OF t, r SKIP LOCKED
) AS free
WHERE runs.thread_id = free.thread_id AND runs.id = free.id
RETURNING runs.thread_id, runs.id, runs.attempt, runs.crashes, runs.stop_by,
          (SELECT t.user_id FROM threads t WHERE t.id = runs.thread_id) AS user_id;
