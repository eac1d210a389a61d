-- name: select_entry
-- `first_seq` tells which parents retention has deleted. The plus keeps SQLite from reading the whole thread.
SELECT e.*, (SELECT first_seq FROM threads WHERE id = :thread_id) AS first_seq
FROM entries e
WHERE substr(e.thread_id, 1, 6) || substr(e.thread_id, -6) || substr(e.id, 1, 10) || substr(e.id, -10)
    = substr(:thread_id, 1, 6) || substr(:thread_id, -6) || substr(:id, 1, 10) || substr(:id, -10)
  AND +e.thread_id = :thread_id AND e.id = :id;

-- name: select_entries_of_ids
SELECT e.* FROM json_each(:ids) i JOIN entries e
    ON substr(e.thread_id, 1, 6) || substr(e.thread_id, -6) || substr(e.id, 1, 10) || substr(e.id, -10)
     = substr(:thread_id, 1, 6) || substr(:thread_id, -6) || substr(i.value, 1, 10) || substr(i.value, -10)
   AND +e.thread_id = :thread_id AND e.id = i.value;
