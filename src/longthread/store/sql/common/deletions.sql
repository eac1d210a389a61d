-- name: own_thread
-- Moves a thread to a user, or to nobody.
UPDATE threads SET user_id = :user_id WHERE id = :id;

-- name: insert_pending_deletion
INSERT INTO pending_deletions (thread_id, root, user_id) VALUES (:thread_id, :root, :user_id);

-- name: select_pending_deletion
-- The thread itself first, then those below it.
SELECT thread_id, user_id FROM pending_deletions
WHERE root = :root ORDER BY CASE WHEN thread_id = root THEN 0 ELSE 1 END, thread_id;

-- name: select_pending_deletions_of_user
SELECT DISTINCT root FROM pending_deletions WHERE user_id = :user_id ORDER BY root;

-- name: select_deletions_without_job
-- As they come with a copy of another store.
SELECT root FROM pending_deletions p
WHERE p.thread_id = p.root AND NOT EXISTS (SELECT 1 FROM background_jobs j WHERE j.kind = :kind AND j.subject = p.root)
ORDER BY root;

-- name: delete_pending_deletion
DELETE FROM pending_deletions WHERE root = :root;
