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
UPDATE runs SET owner = NULL, lease_until = NULL, waiting_since = :now WHERE thread_id = :thread_id AND id = :id;

-- name: prune_approvals
DELETE FROM approvals WHERE thread_id = :thread_id AND run_id < :first_run;
