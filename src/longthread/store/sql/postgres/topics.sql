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
