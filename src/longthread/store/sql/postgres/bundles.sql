-- name: select_said_in
SELECT seq, id, text FROM entries
WHERE thread_id = :thread_id AND seq = ANY(CAST(translate(:seqs, '[]', '{}') AS BIGINT[]));
