-- name: select_bundle_of quick
-- The one that a run may be in.
SELECT * FROM run_bundles WHERE thread_id = :thread_id AND first_id <= :id ORDER BY first_id DESC LIMIT 1;

-- name: select_said_in
SELECT seq, id, text FROM entries
WHERE thread_id = :thread_id AND seq IN (SELECT value FROM json_each(:seqs));
