-- name: select_live_run
SELECT r.*, w.id AS held_by
FROM runs r LEFT JOIN workers w ON w.id = r.owner
WHERE r.thread_id = :thread_id AND r.status = 'running';

-- name: insert_run
INSERT INTO runs (thread_id, id, status, question, question_seq, source, model, protocol, max_steps, continues, first_step,
                  owner, attempt, claimable, started_at, told, last_event, agent_id, agent_version, agent_parts, asker,
                  key_id)
VALUES (:thread_id, :id, 'running', :question, :question_seq, :source, :model, :protocol, :max_steps, :continues,
        :first_step, :owner, 1, TRUE, :now, :told, :last_event, :agent_id, :agent_version, :agent_parts, :asker, :key_id);

-- name: set_answers
UPDATE runs SET parent_run_id = :run_id, parent_call_id = :call_id WHERE thread_id = :thread_id AND id = :id;

-- name: select_run
SELECT r.*, q.text AS asked, e.text AS said, e.id AS said_id
FROM runs r
LEFT JOIN entries q ON q.thread_id = r.thread_id AND q.seq = r.question_seq
LEFT JOIN entries e ON e.thread_id = r.thread_id AND e.seq = r.entry_seq
WHERE r.thread_id = :thread_id AND r.id = :id;

-- name: select_last_run
SELECT r.*, q.text AS asked, e.text AS said, e.id AS said_id
FROM runs r
LEFT JOIN entries q ON q.thread_id = r.thread_id AND q.seq = r.question_seq
LEFT JOIN entries e ON e.thread_id = r.thread_id AND e.seq = r.entry_seq
WHERE r.thread_id = :thread_id
ORDER BY r.id DESC LIMIT 1;

-- name: select_runs
SELECT r.*, q.text AS asked, e.text AS said, e.id AS said_id
FROM runs r
LEFT JOIN entries q ON q.thread_id = r.thread_id AND q.seq = r.question_seq
LEFT JOIN entries e ON e.thread_id = r.thread_id AND e.seq = r.entry_seq
WHERE r.thread_id = :thread_id
ORDER BY r.id DESC LIMIT :limit;

-- name: select_answers
-- The runs that answer calls of a run.
SELECT r.*, q.text AS asked, e.text AS said, e.id AS said_id
FROM threads t
JOIN runs r ON r.thread_id = t.id AND r.parent_run_id = :run_id
LEFT JOIN entries q ON q.thread_id = r.thread_id AND q.seq = r.question_seq
LEFT JOIN entries e ON e.thread_id = r.thread_id AND e.seq = r.entry_seq
WHERE t.parent_thread_id = :thread_id
  AND t.user_id = (SELECT p.user_id FROM threads p WHERE p.id = :thread_id)
ORDER BY r.started_at, r.id;

-- name: select_runs_of_steps
-- The ended runs that made steps with these indexes.
SELECT r.*, NULL AS asked, NULL AS said, NULL AS said_id
FROM runs r
WHERE r.thread_id = :thread_id AND r.first_step < :stop AND r.stop_step > :first AND r.body IS NOT NULL
ORDER BY r.id;

-- name: take_lease
UPDATE runs SET owner = :owner, attempt = attempt + 1, claimable = TRUE, crashes = 0, stop_by = NULL, status = 'running',
                ended_at = NULL, stop_step = NULL, waiting_since = NULL
WHERE thread_id = :thread_id AND id = :id
RETURNING attempt;

-- name: begin_execution
UPDATE runs SET model = :model, steps_before = (SELECT count(*) FROM steps s
                                                WHERE s.thread_id = runs.thread_id AND s.run_id = runs.id
                                                  AND s.idx >= runs.first_step AND s.status = 'done')
WHERE thread_id = :thread_id AND id = :id;

-- name: set_asker
UPDATE runs SET asker = :asker, key_id = :key_id WHERE thread_id = :thread_id AND id = :id;

-- name: drop_lease
UPDATE runs SET owner = NULL, claimable = (:claimable = 1)
WHERE thread_id = :thread_id AND id = :id AND owner = :owner AND attempt = :attempt;

-- name: forgive_crash
UPDATE runs SET crashes = crashes - 1
WHERE thread_id = :thread_id AND id = :id AND status = 'running' AND attempt > :attempt AND crashes > 0;

-- name: request_stop
UPDATE runs SET stop_by = :stop_by WHERE thread_id = :thread_id AND id = :id;

-- name: select_lease
SELECT t.tip, t.entry_count, r.told, r.started_at, r.first_step, r.stop_by
FROM threads t JOIN runs r ON r.thread_id = t.id
WHERE t.id = :thread_id AND r.id = :id AND r.owner = :owner AND r.attempt = :attempt
  AND r.status = 'running';

-- name: end_run
UPDATE runs SET status = :status, outcome = '{}', body = :body, entry_seq = :entry_seq, told = '[]', prompts = :prompts,
                last_event = :last_event, stop_step = :stop_step, ended_at = :now, owner = NULL, waiting_since = NULL,
                stop_by = NULL
WHERE thread_id = :thread_id AND id = :id;

-- name: select_next_step
SELECT max(idx) AS idx FROM (
    SELECT coalesce((SELECT max(idx) + 1 FROM steps WHERE thread_id = :thread_id), 0) AS idx
    UNION ALL
    SELECT coalesce((SELECT coalesce(stop_step, first_step) FROM runs WHERE thread_id = :thread_id
                     ORDER BY id DESC LIMIT 1), 0)
) AS counted;

-- name: insert_step
INSERT INTO steps (thread_id, idx, run_id, kind, status, thought, action, args, observation, call_id, usage, manifest,
                   prompt, entry_seq, told, last_event, started_at, elapsed_ms)
VALUES (:thread_id, :idx, :run_id, :kind, :status, :thought, :action, :args, :observation, :call_id, :usage, :manifest,
        :prompt, :entry_seq, :told, :last_event, :started_at, :elapsed_ms);

-- name: finish_step
UPDATE steps SET status = :status, thought = :thought, action = :action, observation = :observation, usage = :usage,
                 entry_seq = :entry_seq, told = :told, last_event = :last_event, elapsed_ms = :elapsed_ms
WHERE thread_id = :thread_id AND idx = :idx;

-- name: refer_step
UPDATE steps SET observation = NULL, entry_seq = :entry_seq WHERE thread_id = :thread_id AND idx = :idx;

-- name: select_steps
SELECT s.*, e.id, e.text, e.tool_call_id
FROM steps s LEFT JOIN entries e ON e.thread_id = s.thread_id AND e.seq = s.entry_seq
WHERE s.thread_id = :thread_id AND s.idx >= :first AND s.idx < :stop AND s.last_event >= :told_from
ORDER BY s.idx;

-- name: select_own_steps
SELECT * FROM steps WHERE thread_id = :thread_id AND idx >= :first AND run_id = :run_id ORDER BY idx;

-- name: delete_own_steps
DELETE FROM steps WHERE thread_id = :thread_id AND idx >= :first AND run_id = :run_id;

-- name: select_said
SELECT seq, id, text, tool_call_id FROM entries WHERE thread_id = :thread_id AND seq BETWEEN :first AND :last;

-- name: insert_event
INSERT INTO events (thread_id, run_id, seq, type, data, at) VALUES (:thread_id, :run_id, :seq, :type, :data, :at);

-- name: delete_events
DELETE FROM events WHERE thread_id = :thread_id AND run_id = :run_id AND seq BETWEEN :first AND :last AND type = :type;

-- name: delete_own_events
DELETE FROM events WHERE thread_id = :thread_id AND run_id = :run_id;

-- name: select_events
SELECT * FROM events WHERE thread_id = :thread_id AND run_id = :run_id AND seq > :after ORDER BY seq LIMIT :limit;

-- name: select_events_of_type
SELECT * FROM events WHERE thread_id = :thread_id AND run_id = :run_id AND type = :type ORDER BY seq;

-- name: select_last_event
SELECT coalesce(max(last), 0) AS seq FROM (
    SELECT last_event AS last FROM runs WHERE thread_id = :thread_id AND id = :run_id
    UNION ALL
    SELECT max(s.last_event) FROM runs r JOIN steps s ON s.thread_id = r.thread_id AND s.idx >= r.first_step
    WHERE r.thread_id = :thread_id AND r.id = :run_id AND r.stop_step IS NULL AND s.run_id = r.id
    UNION ALL
    SELECT max(seq) FROM events WHERE thread_id = :thread_id AND run_id = :run_id
) AS told;

-- name: keep_last_event
-- The numbers of events that were deleted are not given again.
UPDATE runs SET last_event = :last WHERE thread_id = :thread_id AND id = :run_id AND last_event < :last;

-- name: select_run_states
SELECT r.thread_id, r.id, r.status, w.id AS held_by, r.waiting_since, r.claimable, r.last_event AS told,
       coalesce((SELECT max(s.last_event) FROM steps s
                 WHERE s.thread_id = r.thread_id AND s.idx >= r.first_step AND s.run_id = r.id
                   AND r.stop_step IS NULL), 0) AS step_told,
       coalesce((SELECT max(e.seq) FROM events e WHERE e.thread_id = r.thread_id AND e.run_id = r.id), 0) AS row_told
FROM runs r LEFT JOIN workers w ON w.id = r.owner
WHERE r.thread_id AMONG_TEXTS[:threads] AND r.id AMONG_TEXTS[:runs];

-- name: insert_prompt
INSERT INTO prompts (thread_id, id, body) VALUES (:thread_id, :id, :body) ON CONFLICT (thread_id, id) DO NOTHING;

-- name: select_prompt
SELECT body FROM prompts WHERE thread_id = :thread_id AND id = :id;

-- name: save_fold
INSERT INTO folds (thread_id, seq, queries, data) VALUES (:thread_id, :seq, :queries, :data)
ON CONFLICT (thread_id) DO UPDATE SET seq = excluded.seq, queries = excluded.queries, data = excluded.data;

-- name: move_fold
UPDATE folds SET seq = :seq, queries = :queries WHERE thread_id = :thread_id;

-- name: select_fold
SELECT * FROM folds WHERE thread_id = :thread_id;
