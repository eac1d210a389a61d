-- name: select_following
-- The entries that follow some entries on any branch. Branches that begin elsewhere are few, and an index has them.
SELECT seq, parent_seq, id, role, run_id FROM entries
WHERE thread_id = :thread_id AND parent_seq <> seq - 1 AND parent_seq AMONG_NUMBERS[:seqs]
UNION ALL
SELECT seq, parent_seq, id, role, run_id FROM entries
WHERE thread_id = :thread_id AND parent_seq = seq - 1 AND seq AMONG_NUMBERS[:next]
ORDER BY seq;

-- name: select_last_entry_between
SELECT max(seq) AS seq FROM entries WHERE thread_id = :thread_id AND seq BETWEEN :first AND :last;

-- name: save_branch_tip
INSERT INTO branch_tips (thread_id, seq, tip) VALUES (:thread_id, :seq, :tip)
ON CONFLICT (thread_id, seq) DO UPDATE SET tip = excluded.tip;

-- name: select_branch_tip
SELECT tip FROM branch_tips WHERE thread_id = :thread_id AND seq = :seq;
