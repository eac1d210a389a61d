-- name: insert_queued_question
-- Behind those of its thread, or before them.
INSERT INTO queued_questions (thread_id, id, place, question, source, fingerprint, model, protocol, max_steps,
                              agent_id, agent_version, agent_parts, rolls_back, asker, key_id)
VALUES (:thread_id, :id,
        (SELECT CASE WHEN :first = 1 THEN coalesce(min(place), 0) - 1 ELSE coalesce(max(place), 0) + 1 END
         FROM queued_questions WHERE thread_id = :thread_id),
        :question, :source, :fingerprint, :model, :protocol, :max_steps, :agent_id, :agent_version, :agent_parts,
        :rolls_back, :asker, :key_id);

-- name: select_queued_questions
SELECT * FROM queued_questions WHERE thread_id = :thread_id ORDER BY place;

-- name: delete_queued_question
DELETE FROM queued_questions WHERE thread_id = :thread_id AND id = :id;

-- name: count_queued_questions
SELECT count(*) AS queued FROM queued_questions;

-- name: count_queued_questions_of_user
SELECT count(*) AS queued FROM queued_questions q JOIN threads t ON t.id = q.thread_id WHERE t.user_id = :user_id;

-- name: count_queued_questions_of_threads
SELECT thread_id, count(*) AS queued FROM queued_questions WHERE thread_id AMONG_TEXTS[:threads] GROUP BY thread_id;

-- name: select_load_of_user
-- The runs that processes execute, or will (agents' runs for other agents belong to the runs that asked for them), and the
-- questions that wait for room alone: those behind a run that nobody executes or claims do, too.
SELECT (SELECT count(*) FROM runs r JOIN threads t ON t.id = r.thread_id
        WHERE r.status = 'running' AND r.waiting_since IS NULL AND r.claimable AND r.parent_run_id IS NULL
          AND t.user_id = :user_id) AS live,
       (SELECT count(DISTINCT q.thread_id) FROM queued_questions q JOIN threads t ON t.id = q.thread_id
        WHERE t.user_id = :user_id
          AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.thread_id = q.thread_id AND r.status = 'running'
                          AND (r.claimable OR r.waiting_since IS NOT NULL
                               OR r.owner IN (SELECT id FROM workers)))) AS due;

-- name: select_startable_questions
-- The first of each thread without a run that somebody executes, will execute or decides about, as far as their users may have so many runs at once: first of those with the
-- fewest, then the oldest.
WITH live AS (
    SELECT t.user_id, count(*) AS runs FROM runs r JOIN threads t ON t.id = r.thread_id
    WHERE r.status = 'running' AND r.waiting_since IS NULL AND r.claimable AND r.parent_run_id IS NULL
    GROUP BY t.user_id
), due AS (
    SELECT q.thread_id, q.id, q.queued_at, t.user_id,
           row_number() OVER (PARTITION BY t.user_id ORDER BY q.queued_at, q.thread_id) AS turn
    FROM queued_questions q JOIN threads t ON t.id = q.thread_id
    WHERE q.place = (SELECT min(o.place) FROM queued_questions o WHERE o.thread_id = q.thread_id)
      AND q.thread_id NOT IN (SELECT thread_id FROM pending_deletions)
      AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.thread_id = q.thread_id AND r.status = 'running'
                      AND (r.claimable OR r.waiting_since IS NOT NULL OR r.owner IN (SELECT id FROM workers)))
)
SELECT d.thread_id, d.id, d.user_id FROM due d LEFT JOIN live l ON l.user_id = d.user_id
WHERE coalesce(l.runs, 0) + d.turn <= :most
ORDER BY coalesce(l.runs, 0) + d.turn, d.queued_at, d.thread_id LIMIT :limit;
