-- name: select_lease
-- Locks the thread and then the run. Whoever changed the run did so under the thread's lock, so that both rows are the
-- newest here: a row that was changed while we waited is read again, and the conditions are checked on that.
SELECT t.tip, t.entry_count, r.told, r.started_at, r.first_step
FROM threads t JOIN runs r ON r.thread_id = t.id
WHERE t.id = :thread_id AND r.id = :id AND r.owner = :owner AND r.status = 'running'
FOR NO KEY UPDATE;

-- name: select_leases
-- Locks as `select_lease` does, but only what is not locked: who waits here while holding locks could wait for ever.
SELECT r.id
FROM json_array_elements(CAST(:leases AS JSON)) l
JOIN threads t ON t.id = l ->> 0
JOIN runs r ON r.thread_id = t.id AND r.id = l ->> 1
WHERE r.owner = l ->> 2 AND r.status = 'running'
FOR NO KEY UPDATE OF t, r SKIP LOCKED;

-- name: insert_texts
INSERT INTO events (thread_id, run_id, seq, type, data, at)
SELECT e ->> 0, e ->> 1, CAST(e ->> 2 AS BIGINT), 'text', e ->> 3, e ->> 4
FROM json_array_elements(CAST(:texts AS JSON)) e
ON CONFLICT (thread_id, run_id, seq) DO NOTHING;
