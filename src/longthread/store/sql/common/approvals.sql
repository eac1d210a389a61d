-- name: insert_approval
INSERT INTO approvals (thread_id, run_id, message_id, call_id, place, tool, description, args, parameters,
                       asked_at)
VALUES (:thread_id, :run_id, :message_id, :call_id, :place, :tool, :description, :args, :parameters, :now);

-- name: select_approvals
SELECT * FROM approvals WHERE thread_id = :thread_id AND run_id = :run_id ORDER BY asked_at, place;

-- name: decide_call
UPDATE approvals
SET decision = :decision, edited = :edited, message = :message, decided_by = :decided_by, decided_at = :now
WHERE thread_id = :thread_id AND run_id = :run_id AND message_id = :message_id AND call_id = :call_id;

-- name: let_wait
UPDATE runs SET owner = NULL, waiting_since = :now WHERE thread_id = :thread_id AND id = :id;

-- name: select_waiting
SELECT r.thread_id, r.id
FROM runs r JOIN threads t ON t.id = r.thread_id
WHERE r.status = 'running' AND r.waiting_since IS NOT NULL AND t.user_id = :user_id
ORDER BY r.thread_id;

-- name: select_waiting_below
-- The threads of agents that wait, and each thread above them. What goes round in a circle is climbed no higher.
WITH RECURSIVE up (id, above, height) AS (
    SELECT t.id, t.parent_thread_id, 1
    FROM runs r JOIN threads t ON t.id = r.thread_id
    WHERE r.status = 'running' AND r.waiting_since IS NOT NULL AND t.user_id = :user_id
      AND t.parent_thread_id IS NOT NULL
    UNION ALL
    SELECT up.id, t.parent_thread_id, up.height + 1
    FROM up JOIN threads t ON t.id = up.above
    WHERE t.parent_thread_id IS NOT NULL AND up.height < 100
)
SELECT DISTINCT id, above FROM up ORDER BY id;

-- name: prune_approvals
DELETE FROM approvals WHERE thread_id = :thread_id AND run_id < :first_run;
