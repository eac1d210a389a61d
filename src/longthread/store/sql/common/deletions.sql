-- name: own_thread
-- Moves a thread to a user, or to nobody.
UPDATE threads SET user_id = :user_id WHERE id = :id;

-- name: insert_pending_deletion
INSERT INTO pending_deletions (thread_id, root, user_id, with_memories)
VALUES (:thread_id, :root, :user_id, FLAG[:with_memories]);

-- name: select_pending_deletion
-- The thread itself first, then those below it.
SELECT thread_id, user_id, with_memories FROM pending_deletions
WHERE root = :root ORDER BY CASE WHEN thread_id = root THEN 0 ELSE 1 END, thread_id;

-- name: select_pending_deletions_of_user
SELECT DISTINCT root FROM pending_deletions WHERE user_id = :user_id ORDER BY root;

-- name: select_deletions_without_job
-- As they come with a copy of another store.
SELECT root FROM pending_deletions p
WHERE p.thread_id = p.root AND NOT EXISTS (SELECT 1 FROM background_jobs j WHERE j.kind = :kind AND j.subject = p.root)
ORDER BY root;

-- name: detach_from_deleted
-- The thread above this one is deleted soon by a deletion of its own, which is not to take this one along.
UPDATE threads SET parent_thread_id = NULL
WHERE id = :id AND parent_thread_id IN (SELECT p.thread_id FROM pending_deletions p WHERE p.root <> :id);

-- name: delete_pending_deletion
DELETE FROM pending_deletions WHERE root = :root;
