-- name: select_bundle_before bulky
-- The last one before another, or of all, that has a run behind :above.
SELECT * FROM run_bundles
WHERE thread_id = :thread_id AND (CAST(:before AS TEXT) IS NULL OR first_id < :before) AND last_id > :above
ORDER BY first_id DESC LIMIT 1;

-- name: select_bundle_after bulky
-- The first one behind another that has a run before :before.
SELECT * FROM run_bundles
WHERE thread_id = :thread_id AND first_id > :after AND (CAST(:before AS TEXT) IS NULL OR first_id < :before)
ORDER BY first_id LIMIT 1;

-- name: select_bundles_of_steps bulky
SELECT * FROM run_bundles WHERE thread_id = :thread_id AND first_step < :stop AND stop_step > :first ORDER BY first_id;

-- name: select_bundles_between bulky
-- Those that have a run between two, or would.
SELECT * FROM run_bundles WHERE thread_id = :thread_id AND first_id <= :last AND last_id >= :first ORDER BY first_id;

-- name: select_bundle_places
SELECT first_id, last_id, runs, length(body) AS size FROM run_bundles WHERE thread_id = :thread_id ORDER BY first_id;

-- name: select_last_bundled
SELECT last_id FROM run_bundles WHERE thread_id = :thread_id ORDER BY first_id DESC LIMIT 1;

-- name: select_loose_runs
-- Of the first few runs between two those that may be bundled: they have ended, and nobody looks for them but by their id
-- and their steps.
SELECT r.id, length(r.body) AS size
FROM (
    SELECT * FROM runs
    WHERE thread_id = :thread_id AND id >= :first AND (CAST(:last AS TEXT) IS NULL OR id <= :last)
    ORDER BY id LIMIT :few
) r
WHERE r.status <> 'running' AND r.ended_at IS NOT NULL AND r.stop_step IS NOT NULL AND r.parent_run_id IS NULL
  AND r.parent_call_id IS NULL AND r.id <> '' AND length(r.body) <= :most
  AND r.id < (SELECT max(x.id) FROM runs x WHERE x.thread_id = :thread_id)
  AND NOT EXISTS (SELECT 1 FROM memory_uses u WHERE u.session_id = r.thread_id AND u.run_id = r.id)
  AND NOT EXISTS (SELECT 1 FROM events e WHERE e.thread_id = r.thread_id AND e.run_id = r.id)
ORDER BY r.id;

-- name: select_run_few_back
SELECT id FROM runs WHERE thread_id = :thread_id ORDER BY id DESC LIMIT 1 OFFSET :few;

-- name: select_runs_between
SELECT * FROM runs WHERE thread_id = :thread_id AND id BETWEEN :first AND :last ORDER BY id;

-- name: select_next_run
SELECT id, first_step FROM runs WHERE thread_id = :thread_id AND id > :after ORDER BY id LIMIT 1;

-- name: insert_bundle
INSERT INTO run_bundles (thread_id, first_id, last_id, runs, first_step, stop_step, prompts, ended_at, body)
VALUES (:thread_id, :first_id, :last_id, :runs, :first_step, :stop_step, :prompts, :ended_at, :body);

-- name: delete_bundle
DELETE FROM run_bundles WHERE thread_id = :thread_id AND first_id = :first_id;

-- name: delete_bundled_run
DELETE FROM runs WHERE thread_id = :thread_id AND id = :id;

-- name: measure_bundles
-- Those whose runs are all before one, or all there are.
SELECT coalesce(sum(runs), 0) AS runs, coalesce(sum(length(body)), 0) AS size FROM run_bundles
WHERE thread_id = :thread_id AND (CAST(:first_run AS TEXT) IS NULL OR last_id < :first_run);

-- name: delete_bundles_before
DELETE FROM run_bundles WHERE thread_id = :thread_id AND last_id < :first_run;

-- name: count_bundled
SELECT coalesce(sum(runs), 0) AS runs FROM run_bundles;

-- name: select_said_by quick
SELECT seq, id, text FROM entries WHERE thread_id = :thread_id AND seq IN (:question_seq, :entry_seq);
