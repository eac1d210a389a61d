-- name: select_bundle_of bulky
-- The one that a run may be in.
SELECT * FROM run_bundles WHERE thread_id = :thread_id AND first_id <= :id ORDER BY first_id DESC LIMIT 1;

-- name: select_said_in
SELECT seq, id, text FROM entries
WHERE thread_id = :thread_id AND seq = ANY(CAST(translate(:seqs, '[]', '{}') AS BIGINT[]));
