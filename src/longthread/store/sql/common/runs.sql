-- name: select_live_run
SELECT * FROM runs WHERE thread_id = :thread_id AND status = 'running';

-- name: insert_run
INSERT INTO runs (thread_id, id, status, question, source, model, protocol, max_steps, continues, first_step, owner,
                  lease_until, started_at)
VALUES (:thread_id, :id, 'running', :question, :source, :model, :protocol, :max_steps, :continues, :first_step, :owner,
        :lease_until, :now);

-- name: select_run
SELECT * FROM runs WHERE thread_id = :thread_id AND id = :id;

-- name: select_last_run
SELECT * FROM runs WHERE thread_id = :thread_id ORDER BY id DESC LIMIT 1;

-- name: take_lease
UPDATE runs SET owner = :owner, lease_until = :lease_until, status = 'running', ended_at = NULL
WHERE thread_id = :thread_id AND id = :id;

-- name: renew_lease
UPDATE runs SET lease_until = :lease_until
WHERE thread_id = :thread_id AND id = :id AND owner = :owner AND status = 'running';

-- name: select_lease
SELECT 1 AS held FROM runs WHERE thread_id = :thread_id AND id = :id AND owner = :owner AND status = 'running';

-- name: end_run
UPDATE runs SET status = :status, outcome = :outcome, ended_at = :now, owner = NULL, lease_until = NULL
WHERE thread_id = :thread_id AND id = :id;

-- name: select_next_step
SELECT coalesce(max(idx), -1) + 1 AS idx FROM steps WHERE thread_id = :thread_id;

-- name: insert_step
INSERT INTO steps (thread_id, idx, run_id, kind, status, thought, action, args, call_id, manifest, started_at)
VALUES (:thread_id, :idx, :run_id, :kind, 'running', :thought, :action, :args, :call_id, :manifest, :now);

-- name: finish_step
UPDATE steps SET status = :status, thought = :thought, action = :action, observation = :observation, usage = :usage,
                 elapsed_ms = :elapsed_ms
WHERE thread_id = :thread_id AND idx = :idx;

-- name: select_steps
SELECT * FROM steps WHERE thread_id = :thread_id AND idx >= :first ORDER BY idx;

-- name: select_steps_between
SELECT * FROM steps WHERE thread_id = :thread_id AND idx >= :first AND idx < :stop ORDER BY idx;

-- name: insert_event
INSERT INTO events (thread_id, run_id, seq, type, data, at) VALUES (:thread_id, :run_id, :seq, :type, :data, :at);

-- name: select_events
SELECT * FROM events WHERE thread_id = :thread_id AND run_id = :run_id AND seq > :after ORDER BY seq LIMIT :limit;

-- name: select_events_of_type
SELECT * FROM events WHERE thread_id = :thread_id AND run_id = :run_id AND type = :type ORDER BY seq;

-- name: select_last_event
SELECT coalesce(max(seq), 0) AS seq FROM events WHERE thread_id = :thread_id AND run_id = :run_id;

-- name: save_fold
INSERT INTO folds (thread_id, seq, data) VALUES (:thread_id, :seq, :data)
ON CONFLICT (thread_id) DO UPDATE SET seq = excluded.seq, data = excluded.data;

-- name: select_fold
SELECT * FROM folds WHERE thread_id = :thread_id;
