-- name: select_embedded
-- All that a pass with nothing to do has to know.
SELECT t.first_seq, t.entry_count, t.incarnation, m.last_seq, m.signed_from, coalesce(m.refused, 0) AS refused,
       EXISTS (SELECT 1 FROM recall_embedded o WHERE o.thread_id = t.id AND o.model <> :model) AS others
FROM threads t LEFT JOIN recall_embedded m ON m.thread_id = t.id AND m.model = :model
WHERE t.id = :thread_id;

-- name: select_threads_behind
SELECT t.id AS thread_id FROM threads t LEFT JOIN recall_embedded m ON m.thread_id = t.id AND m.model = :model
WHERE t.user_id = :user_id
  AND (CAST(:agent_id AS TEXT) IS NULL OR coalesce(t.agent_id, '6c6f6e67-7468-5265-8164-616e616c7973') = :agent_id)
  AND t.entry_count >= t.first_seq AND coalesce(m.last_seq, 0) < t.entry_count
ORDER BY t.updated_at DESC, t.id;

-- name: write_embedded
INSERT INTO recall_embedded (thread_id, model, last_seq, refused)
VALUES (:thread_id, :model, :last_seq, :refused)
ON CONFLICT (thread_id, model) DO UPDATE SET last_seq = excluded.last_seq, refused = excluded.refused;

-- name: sign_embedded
UPDATE recall_embedded SET signed_from = :signed_from WHERE thread_id = :thread_id AND model = :model;

-- name: delete_other_embedded
DELETE FROM recall_embedded WHERE thread_id = :thread_id AND model <> :model;

-- name: count_missing_vectors
SELECT count(*) AS missing FROM entries e
WHERE e.thread_id = :thread_id AND e.seq > :after AND NOT EXISTS (
    SELECT 1 FROM memory_vectors v WHERE v.thread_id = :thread_id AND v.model = :model AND v.seq = e.seq
);

-- name: select_missing_vectors
SELECT e.seq FROM entries e
WHERE e.thread_id = :thread_id AND e.seq > :after AND NOT EXISTS (
    SELECT 1 FROM memory_vectors v WHERE v.thread_id = :thread_id AND v.model = :model AND v.seq = e.seq
)
ORDER BY e.seq
LIMIT :limit;

-- name: delete_other_vectors
DELETE FROM memory_vectors WHERE thread_id = :thread_id AND seq IS NOT NULL AND model <> :model;

-- name: delete_other_signatures
DELETE FROM recall_signatures WHERE thread_id = :thread_id AND model <> :model;

-- name: select_signature
-- Here and below: stamps of another form are those of another version of Longthread, which cannot be read.
SELECT data FROM recall_signatures s
WHERE s.thread_id = :thread_id AND s.model = :model AND s.block = :block AND substr(s.stamp, 1, 2) = '2:';

-- name: write_signature
INSERT INTO recall_signatures (thread_id, model, block, stamp, data)
VALUES (:thread_id, :model, :block, :stamp, :data)
ON CONFLICT (thread_id, model, block) DO UPDATE SET stamp = excluded.stamp, data = excluded.data;

-- name: select_unsigned_blocks
SELECT DISTINCT v.seq / :size AS block FROM memory_vectors v
WHERE v.thread_id = :thread_id AND v.model = :model AND v.seq < :before AND NOT EXISTS (
    SELECT 1 FROM recall_signatures s
    WHERE s.thread_id = :thread_id AND s.model = :model AND s.block = v.seq / :size
      AND substr(s.stamp, 1, 2) = '2:'
)
ORDER BY block;

-- name: select_signature_heads
SELECT s.thread_id, s.block, s.stamp FROM recall_signatures s
WHERE s.thread_id = :thread_id AND s.model = :model
  AND EXISTS (SELECT 1 FROM threads t WHERE t.id = :thread_id AND t.user_id = :user_id)
  AND substr(s.stamp, 1, 2) = '2:'
ORDER BY s.block;

-- name: select_signature_heads_of_user
SELECT s.thread_id, s.block, s.stamp FROM threads t JOIN recall_signatures s ON s.thread_id = t.id
WHERE t.user_id = :user_id
  AND (CAST(:agent_id AS TEXT) IS NULL OR coalesce(t.agent_id, '6c6f6e67-7468-5265-8164-616e616c7973') = :agent_id)
  AND s.model = :model
  AND substr(s.stamp, 1, 2) = '2:'
ORDER BY s.thread_id, s.block;

-- name: select_signatures bulky
SELECT s.thread_id, s.block, s.stamp, s.data FROM recall_signatures s
WHERE s.thread_id = :thread_id AND s.model = :model AND s.block >= :first
  AND EXISTS (SELECT 1 FROM threads t WHERE t.id = :thread_id AND t.user_id = :user_id)
  AND substr(s.stamp, 1, 2) = '2:'
ORDER BY s.block;

-- name: select_signatures_of_user bulky
SELECT s.thread_id, s.block, s.stamp, s.data FROM threads t JOIN recall_signatures s ON s.thread_id = t.id
WHERE t.user_id = :user_id
  AND (CAST(:agent_id AS TEXT) IS NULL OR coalesce(t.agent_id, '6c6f6e67-7468-5265-8164-616e616c7973') = :agent_id)
  AND s.model = :model
  AND s.block >= :first
  AND substr(s.stamp, 1, 2) = '2:'
ORDER BY s.thread_id, s.block;

-- name: forget_vectors
DELETE FROM memory_vectors WHERE thread_id = :thread_id AND seq AMONG_NUMBERS[:seqs];

-- name: forget_signatures
DELETE FROM recall_signatures WHERE thread_id = :thread_id AND block AMONG_NUMBERS[:blocks];

-- name: unsign_embedded
UPDATE recall_embedded SET signed_from = NULL WHERE thread_id = :thread_id;
