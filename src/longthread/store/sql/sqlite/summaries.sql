-- name: select_summary quick
SELECT s.summary, s.message_count, s.config_hash, s.first_seq, s.last_seq, s.model,
    CASE WHEN s.model IS NULL THEN s.digest END AS digest,
    coalesce(s.digest LIKE '%"unwritten":%', FALSE) AS unwritten, (
    SELECT json_group_array(topic) FROM (
        SELECT topic FROM memory_topics WHERE thread_id = :thread_id
        ORDER BY mention_count DESC, last_seen_at DESC, topic LIMIT :topics
    ) AS named
) AS topics
FROM conversation_summaries s WHERE s.thread_id = :thread_id;
