-- name: select_recall_postings
SELECT p.thread_id, p.segment, p.bucket, p.data FROM recall_postings p
WHERE p.thread_id = :thread_id AND p.bucket IN (SELECT value FROM json_each(:buckets))
  AND EXISTS (SELECT 1 FROM threads t WHERE t.id = :thread_id AND t.user_id = :user_id)
ORDER BY p.segment, p.bucket;

-- name: select_entries_at
SELECT e.*, (SELECT first_seq FROM threads WHERE id = :thread_id) AS first_seq
FROM entries e WHERE e.thread_id = :thread_id AND e.seq IN (SELECT value FROM json_each(:seqs)) ORDER BY e.seq;

-- name: select_recall_texts_at
SELECT seq, role, name, text, tool_calls, metadata, created_at,
    CASE WHEN length(payload) <= :most THEN payload END AS payload, COALESCE(length(payload), 0) AS size
FROM entries WHERE thread_id = :thread_id AND seq IN (SELECT value FROM json_each(:seqs)) ORDER BY seq;

-- name: select_message_versions
-- The entries that were given other ids than their messages, for these had one already, by the messages' ids.
SELECT seq, json_extract(metadata, '$.message_id') AS message_id FROM entries
WHERE thread_id = :thread_id
  AND CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.message_id') END IS NOT NULL
  AND CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.message_id') END
      IN (SELECT value FROM json_each(:ids));
