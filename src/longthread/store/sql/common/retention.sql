-- name: select_retention
-- What retention must know of a thread.
SELECT user_id, tip, entry_count, first_seq, updated_at, expires_at FROM threads WHERE id = :id;

-- name: select_thread_above
SELECT p.id FROM threads t JOIN threads p ON p.id = t.parent_thread_id AND p.user_id = t.user_id WHERE t.id = :id;

-- name: select_first_entry_since
SELECT seq FROM entries WHERE thread_id = :thread_id AND seq >= :from_seq AND created_at >= :since ORDER BY seq LIMIT 1;

-- name: select_entry_time
SELECT created_at FROM entries WHERE thread_id = :thread_id AND seq = :seq;

-- name: select_first_kept_run
-- The first run that stays, and with it all that came after. Those before have ended, are not the thread's last, and
-- ended long ago or have no entry left.
SELECT id, first_step FROM runs
WHERE thread_id = :thread_id
  AND (ended_at IS NULL OR status = 'running' OR id = (SELECT max(id) FROM runs WHERE thread_id = :thread_id)
       OR (ended_at >= :ended_before AND NOT coalesce(entry_seq < :cut, ended_at < :cut_at)))
ORDER BY id
LIMIT 1;

-- name: select_run_after
-- The first run behind the next few.
SELECT id, first_step FROM runs WHERE thread_id = :thread_id AND id < :first_run ORDER BY id LIMIT 1 OFFSET :few;

-- name: move_first_seq
UPDATE threads SET first_seq = :first_seq WHERE id = :thread_id AND first_seq < :first_seq;

-- name: prune_entries
DELETE FROM entries WHERE thread_id = :thread_id AND seq < :cut;

-- name: prune_message_metadata
DELETE FROM message_metadata WHERE thread_id = :thread_id AND seq < :cut;

-- name: prune_branch_tips
DELETE FROM branch_tips WHERE thread_id = :thread_id AND seq < :cut;

-- name: prune_runs
DELETE FROM runs WHERE thread_id = :thread_id AND id < :first_run;

-- name: prune_events
DELETE FROM events WHERE thread_id = :thread_id AND run_id < :first_run;

-- name: prune_steps
-- The last step stays, whosever it is: the next one counts on from it.
DELETE FROM steps
WHERE thread_id = :thread_id AND idx < :first_step AND idx < (SELECT max(idx) FROM steps WHERE thread_id = :thread_id);

-- name: select_prompts_named
-- What the steps name that stay, and the runs that have ended and stay: several a row.
SELECT prompt AS names FROM steps
WHERE thread_id = :thread_id AND prompt IS NOT NULL
  AND (idx >= :first_step OR idx = (SELECT max(idx) FROM steps WHERE thread_id = :thread_id))
UNION
SELECT prompts FROM runs WHERE thread_id = :thread_id AND id >= :first_run AND prompts IS NOT NULL;

-- name: select_checkpoint_after
-- The first checkpoint behind the next few.
SELECT n FROM checkpoints WHERE thread_id = :thread_id AND ns = :ns AND n < :n ORDER BY n LIMIT 1 OFFSET :few;

-- name: prune_checkpoints
DELETE FROM checkpoints WHERE thread_id = :thread_id AND ns = :ns AND n < :n;

-- name: prune_writes
-- What a run writes just now is for a checkpoint that is still to come. Clocks differ: one that goes may have a later id.
DELETE FROM checkpoint_writes
WHERE thread_id = :thread_id AND ns = :ns AND (
    checkpoint_id < :newest
    OR checkpoint_id IN (SELECT id FROM checkpoints WHERE thread_id = :thread_id AND ns = :ns AND n < :n)
) AND checkpoint_id NOT IN (
    SELECT id FROM checkpoints WHERE thread_id = :thread_id AND ns = :ns AND n >= :n
);

-- name: prune_blob
DELETE FROM checkpoint_blobs WHERE thread_id = :thread_id AND ns = :ns AND n = :n AND channel = :channel;

-- name: prune_ns
DELETE FROM checkpoints WHERE thread_id = :thread_id AND ns = :ns;

-- name: prune_ns_writes
DELETE FROM checkpoint_writes WHERE thread_id = :thread_id AND ns = :ns;

-- name: prune_ns_blobs
DELETE FROM checkpoint_blobs WHERE thread_id = :thread_id AND ns = :ns;

-- name: prune_prompts
-- Those that are not among the :kept.
DELETE FROM prompts WHERE thread_id = :thread_id AND id NOT AMONG_TEXTS[:kept];
