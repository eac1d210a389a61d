-- name: select_entry quick
-- `first_seq` tells which parents retention has deleted. The plus keeps SQLite from reading the whole thread.
SELECT e.*, (SELECT first_seq FROM threads WHERE id = :thread_id) AS first_seq
FROM entries e
WHERE CASE WHEN length(e.thread_id) = 36 AND substr(e.thread_id, -8) GLOB '[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'
         THEN substr(e.thread_id, -6) ELSE e.thread_id END
    || CASE WHEN length(e.id) = 36 AND substr(e.id, -8) GLOB '[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'
            THEN substr(e.id, 11, 3) || substr(e.id, -8) ELSE e.id END
    = CASE WHEN length(:thread_id) = 36 AND substr(:thread_id, -8) GLOB '[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'
         THEN substr(:thread_id, -6) ELSE :thread_id END
    || CASE WHEN length(:id) = 36 AND substr(:id, -8) GLOB '[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'
            THEN substr(:id, 11, 3) || substr(:id, -8) ELSE :id END
  AND +e.thread_id = :thread_id AND e.id = :id;

-- name: select_entry_seq quick
SELECT e.seq FROM entries e
WHERE CASE WHEN length(e.thread_id) = 36 AND substr(e.thread_id, -8) GLOB '[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'
         THEN substr(e.thread_id, -6) ELSE e.thread_id END
    || CASE WHEN length(e.id) = 36 AND substr(e.id, -8) GLOB '[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'
            THEN substr(e.id, 11, 3) || substr(e.id, -8) ELSE e.id END
    = CASE WHEN length(:thread_id) = 36 AND substr(:thread_id, -8) GLOB '[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'
         THEN substr(:thread_id, -6) ELSE :thread_id END
    || CASE WHEN length(:id) = 36 AND substr(:id, -8) GLOB '[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'
            THEN substr(:id, 11, 3) || substr(:id, -8) ELSE :id END
  AND +e.thread_id = :thread_id AND e.id = :id;
