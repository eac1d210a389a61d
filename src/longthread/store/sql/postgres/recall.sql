-- name: select_recall_postings bulky
SELECT p.thread_id, p.segment, p.bucket, p.data FROM recall_postings p
WHERE p.thread_id = :thread_id AND p.bucket = ANY(CAST(translate(:buckets, '[]', '{}') AS BIGINT[]))
  AND EXISTS (SELECT 1 FROM threads t WHERE t.id = :thread_id AND t.user_id = :user_id)
ORDER BY p.segment, p.bucket;

-- name: select_entries_at
SELECT e.*, (SELECT first_seq FROM threads WHERE id = :thread_id) AS first_seq
FROM entries e
WHERE e.thread_id = :thread_id AND e.seq = ANY(CAST(translate(:seqs, '[]', '{}') AS BIGINT[])) ORDER BY e.seq;

-- name: select_recall_texts_at
SELECT seq, role, name, text, tool_calls, metadata, created_at,
    CASE WHEN length(payload) <= :most THEN payload END AS payload, COALESCE(length(payload), 0) AS size
FROM entries WHERE thread_id = :thread_id AND seq = ANY(CAST(translate(:seqs, '[]', '{}') AS BIGINT[])) ORDER BY seq;

-- name: select_message_versions
-- The entries that were given other ids than their messages, for these had one already, by the messages' ids.
SELECT e.seq, given.message_id
FROM jsonb_array_elements_text(CAST(:ids AS JSONB)) AS given (message_id)
JOIN entries e ON e.thread_id = :thread_id
  AND substring(e.metadata FROM '"message_id":"((?:[^"\\]|\\.)*)"') IS NOT NULL
  AND substring(e.metadata FROM '"message_id":"((?:[^"\\]|\\.)*)"') = substring(
    CAST(to_json(given.message_id) AS TEXT) FROM 2 FOR length(CAST(to_json(given.message_id) AS TEXT)) - 2
  )
  AND json_of(e.metadata) ->> 'message_id' = given.message_id;
