-- name: count_topic
INSERT INTO memory_topics (thread_id, topic, mention_count, last_seen_at)
SELECT s.thread_id, s.topic, CAST(sum(s.mentions) AS INT), CAST(max(s.seen_at) AS TIMESTAMPTZ)
FROM memory_topic_spans s WHERE s.thread_id = :thread_id AND s.topic = :topic GROUP BY s.thread_id, s.topic
ON CONFLICT (thread_id, topic) DO UPDATE SET
    mention_count = excluded.mention_count, last_seen_at = excluded.last_seen_at;

-- name: recount_topics
UPDATE memory_topics SET (mention_count, last_seen_at) = (
    SELECT CAST(sum(s.mentions) AS INT), CAST(max(s.seen_at) AS TIMESTAMPTZ) FROM memory_topic_spans s
    WHERE s.thread_id = :thread_id AND s.topic = memory_topics.topic
)
WHERE thread_id = :thread_id;

-- name: tag_vectors
-- The topics of a vector are those of the stretches that its entry stands in. One that has them already is not written.
UPDATE memory_vectors v SET topics = t.topics
FROM (
    SELECT w.id, ARRAY(
        SELECT DISTINCT s.topic FROM memory_topic_spans s
        WHERE s.thread_id = :thread_id AND w.seq BETWEEN s.first_seq AND s.last_seq ORDER BY s.topic) AS topics
    FROM memory_vectors w WHERE w.thread_id = :thread_id AND w.seq BETWEEN :first AND :last
) t
WHERE v.id = t.id AND v.topics IS DISTINCT FROM t.topics;
