-- name: select_lease
-- Locks the thread and then the run. Whoever changed the run did so under the thread's lock, so that both rows are the
-- newest here: a row that was changed while we waited is read again, and the conditions are checked on that.
SELECT t.tip, t.entry_count, r.told, r.started_at, r.first_step
FROM threads t JOIN runs r ON r.thread_id = t.id
WHERE t.id = :thread_id AND r.id = :id AND r.owner = :owner AND r.status = 'running'
FOR NO KEY UPDATE;
