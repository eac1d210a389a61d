-- Read in another program's database: that of one of LangGraph's own savers. In SQLite its writes are in `writes`.

-- name: foreign_threads
SELECT thread_id, count(*) AS checkpoints FROM checkpoints GROUP BY thread_id ORDER BY min(checkpoint_id);

-- name: foreign_checkpoints
SELECT c.checkpoint_ns AS ns, c.checkpoint_id AS id, c.parent_checkpoint_id AS parent,
       (SELECT count(*) FROM checkpoint_writes w
        WHERE w.thread_id = c.thread_id AND w.checkpoint_ns = c.checkpoint_ns AND w.checkpoint_id = c.checkpoint_id
       ) AS writes
FROM checkpoints c WHERE c.thread_id = :thread_id;

-- name: foreign_paths
SELECT DISTINCT task_id, task_path FROM checkpoint_writes
WHERE thread_id = :thread_id AND checkpoint_ns = :ns AND checkpoint_id = :id;

-- name: foreign_metadata
SELECT metadata FROM checkpoints WHERE thread_id = :thread_id ORDER BY checkpoint_id, checkpoint_ns;

-- name: count_checkpoint_writes
-- In our own.
SELECT c.ns, c.id, coalesce(p.id, c.parent_id) AS parent,
       c.writes + coalesce((SELECT sum(w.writes) FROM checkpoint_writes w
                            WHERE w.thread_id = c.thread_id AND w.ns = c.ns AND w.checkpoint_id = c.id), 0) AS writes
FROM checkpoints c JOIN threads t ON t.id = c.thread_id AND t.user_id = :user_id
    LEFT JOIN checkpoints p ON p.thread_id = c.thread_id AND p.ns = c.ns AND p.n = c.parent_n
WHERE c.thread_id = :thread_id;

-- name: imported_entries
-- Here and below, again in our own: what an import compares.
SELECT id, text, metadata FROM entries WHERE thread_id = :thread_id ORDER BY seq;

-- name: note_import
UPDATE threads
SET title = coalesce(:title, title), entry_count = :entry_count, updated_at = :updated_at, metadata = :metadata
WHERE id = :id;

-- name: foreign_unreadable
-- Tables that this user may not read: a file may be read, or not.
SELECT '' AS name WHERE FALSE;
