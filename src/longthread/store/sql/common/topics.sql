-- name: insert_topic_span
INSERT INTO memory_topic_spans (thread_id, topic, first_seq, last_seq, mentions, seen_at)
VALUES (:thread_id, :topic, :first_seq, :last_seq, :mentions, :seen_at)
ON CONFLICT (thread_id, topic, first_seq) DO UPDATE SET
    last_seq = excluded.last_seq, mentions = excluded.mentions, seen_at = excluded.seen_at;

-- name: delete_topic_spans
DELETE FROM memory_topic_spans WHERE thread_id = :thread_id;

-- name: delete_topics_of_thread
DELETE FROM memory_topics WHERE thread_id = :thread_id;

-- name: prune_topic_spans
DELETE FROM memory_topic_spans WHERE thread_id = :thread_id AND first_seq < :cut;

-- name: prune_topics
-- Those whose stretches are all deleted next.
DELETE FROM memory_topics
WHERE thread_id = :thread_id AND :cut > (
    SELECT max(s.first_seq) FROM memory_topic_spans s
    WHERE s.thread_id = :thread_id AND s.topic = memory_topics.topic
);

-- name: select_topics
SELECT topic, mention_count FROM memory_topics WHERE thread_id = :thread_id
ORDER BY mention_count DESC, last_seen_at DESC, topic LIMIT :limit;

-- name: select_topic_names
-- Those of stretches, and those that another program stored.
SELECT DISTINCT s.topic FROM threads t JOIN (
    SELECT thread_id, topic FROM memory_topic_spans UNION SELECT thread_id, topic FROM memory_topics
) s ON s.thread_id = t.id
WHERE t.user_id = :user_id AND (CAST(:thread_id AS TEXT) IS NULL OR t.id = :thread_id)
  AND (CAST(:agent_id AS TEXT) IS NULL OR coalesce(t.agent_id, '6c6f6e67-7468-5265-8164-616e616c7973') = :agent_id)
ORDER BY s.topic;

-- name: select_topic_spans
-- A topic that another program stored is one of the whole thread.
SELECT s.thread_id, s.topic, s.first_seq, s.last_seq, s.mentions, s.seen_at
FROM threads t JOIN (
    SELECT thread_id, topic, first_seq, last_seq, mentions, seen_at FROM memory_topic_spans
    UNION ALL
    SELECT m.thread_id, m.topic, x.first_seq, x.entry_count, m.mention_count, x.updated_at
    FROM memory_topics m JOIN threads x ON x.id = m.thread_id
    WHERE x.entry_count > 0 AND NOT EXISTS (
        SELECT 1 FROM memory_topic_spans o WHERE o.thread_id = m.thread_id AND o.topic = m.topic)
) s ON s.thread_id = t.id
WHERE t.user_id = :user_id AND (CAST(:thread_id AS TEXT) IS NULL OR t.id = :thread_id)
  AND (CAST(:agent_id AS TEXT) IS NULL OR coalesce(t.agent_id, '6c6f6e67-7468-5265-8164-616e616c7973') = :agent_id)
  AND s.topic = :topic
ORDER BY s.thread_id, s.first_seq;

-- name: count_topic
INSERT INTO memory_topics (thread_id, topic, mention_count, last_seen_at)
SELECT s.thread_id, s.topic, CAST(sum(s.mentions) AS INT), STAMP[max(s.seen_at)]
FROM memory_topic_spans s WHERE s.thread_id = :thread_id AND s.topic = :topic GROUP BY s.thread_id, s.topic
ON CONFLICT (thread_id, topic) DO UPDATE SET
    mention_count = excluded.mention_count, last_seen_at = excluded.last_seen_at;

-- name: recount_topics
UPDATE memory_topics SET (mention_count, last_seen_at) = (
    SELECT CAST(sum(s.mentions) AS INT), STAMP[max(s.seen_at)] FROM memory_topic_spans s
    WHERE s.thread_id = :thread_id AND s.topic = memory_topics.topic
)
WHERE thread_id = :thread_id AND EXISTS (
    SELECT 1 FROM memory_topic_spans o WHERE o.thread_id = :thread_id AND o.topic = memory_topics.topic
);
