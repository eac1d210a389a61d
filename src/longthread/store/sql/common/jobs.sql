-- name: claim_job
-- Takes a job that nobody does, or that a dead worker left. The second worker that dies of one makes the third wait. One
-- that was given up (its `due_at` is `never`) is not among those that wait; who claims it nevertheless begins anew.
INSERT INTO background_jobs (kind, subject, thread_id, owner, failures, due_at)
SELECT CAST(:kind AS TEXT), CAST(:subject AS TEXT), CAST(:thread_id AS TEXT), CAST(:owner AS TEXT), 0, 0
WHERE CAST(:thread_id AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM threads WHERE id = :thread_id)
ON CONFLICT (kind, subject) DO UPDATE SET
    owner = excluded.owner,
    failures = CASE WHEN background_jobs.due_at = :never THEN 0 ELSE background_jobs.failures END
             + CASE WHEN background_jobs.owner IS NULL OR background_jobs.owner = excluded.owner THEN 0 ELSE 1 END,
    due_at = CASE WHEN background_jobs.due_at = :never THEN 0
                  WHEN background_jobs.owner IS NULL OR background_jobs.owner = excluded.owner THEN background_jobs.due_at
                  WHEN background_jobs.failures < 9
                  THEN :now + 10000 * (1 << CAST(background_jobs.failures AS INTEGER))
                  ELSE :now + 3600000 END
WHERE (background_jobs.due_at <= :due OR background_jobs.due_at > :now + 3660000)
  AND (background_jobs.owner IS NULL OR background_jobs.owner = excluded.owner
       OR background_jobs.owner NOT IN (SELECT id FROM workers))
RETURNING failures;

-- name: note_job
-- A job for whoever claims it, or for one worker while it lives, unless it is known.
INSERT INTO background_jobs (kind, subject, thread_id, owner, failures, due_at)
SELECT CAST(:kind AS TEXT), CAST(:subject AS TEXT), CAST(:thread_id AS TEXT), CAST(:owner AS TEXT), 0, CAST(:due_at AS BIGINT)
WHERE CAST(:thread_id AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM threads WHERE id = :thread_id)
ON CONFLICT DO NOTHING;

-- name: delete_job
DELETE FROM background_jobs WHERE kind = :kind AND subject = :subject AND owner = :owner;

-- name: call_off_job
-- Whoever does it.
DELETE FROM background_jobs WHERE kind = :kind AND subject = :subject;

-- name: give_back_job
UPDATE background_jobs SET owner = NULL, due_at = 0
WHERE kind = :kind AND subject = :subject AND owner = :owner;

-- name: repeat_job
-- It was done, and is to be done again.
UPDATE background_jobs SET owner = NULL, failures = 0, due_at = :due_at
WHERE kind = :kind AND subject = :subject AND owner = :owner;

-- name: give_up_job
UPDATE background_jobs SET owner = NULL, due_at = :never
WHERE kind = :kind AND subject = :subject AND owner = :owner;

-- name: fail_job
-- The waits are 10 seconds, 20, 40 and so on, at most an hour.
UPDATE background_jobs
SET owner = NULL, failures = failures + 1,
    due_at = :now + CASE WHEN failures < 9 THEN 10000 * (1 << CAST(failures AS INTEGER)) ELSE 3600000 END
WHERE kind = :kind AND subject = :subject AND owner = :owner;

-- name: select_waiting_jobs
-- No job waits for more than an hour: one that is due a minute later than that was noted before the clock was set back.
-- The minute is for servers whose clocks differ.
SELECT kind, subject FROM background_jobs
WHERE kind AMONG_TEXTS[:kinds] AND (due_at <= :now OR (due_at > :now + 3660000 AND due_at < :never))
  AND (owner IS NULL OR owner NOT IN (SELECT id FROM workers))
ORDER BY due_at, kind, subject LIMIT :limit;

-- name: select_job_owner
SELECT owner FROM background_jobs
WHERE kind = :kind AND subject = :subject AND owner IN (SELECT id FROM workers);

-- name: delete_jobs_of_user
DELETE FROM background_jobs WHERE kind = :kind AND subject = :user_id;

-- name: select_unwritten_summaries
-- Digests that a model is to replace, of threads with a run that tells which.
SELECT s.thread_id FROM conversation_summaries s
WHERE s.thread_id > :after AND s.digest LIKE '%"unwritten":%' AND EXISTS (SELECT 1 FROM runs r WHERE r.thread_id = s.thread_id)
  AND NOT EXISTS (SELECT 1 FROM background_jobs j WHERE j.kind = :kind AND j.subject = s.thread_id)
ORDER BY s.thread_id LIMIT :limit;
