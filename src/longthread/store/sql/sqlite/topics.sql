-- name: tag_vectors
-- The topics of a vector are those of the stretches that its entry stands in. One that has them already is not written.
UPDATE memory_vectors SET topics = (
    SELECT json_group_array(topic) FROM (
        SELECT DISTINCT s.topic FROM memory_topic_spans s
        WHERE s.thread_id = :thread_id AND memory_vectors.seq BETWEEN s.first_seq AND s.last_seq ORDER BY s.topic))
WHERE thread_id = :thread_id AND seq BETWEEN :first AND :last AND topics IS NOT (
    SELECT json_group_array(topic) FROM (
        SELECT DISTINCT s.topic FROM memory_topic_spans s
        WHERE s.thread_id = :thread_id AND memory_vectors.seq BETWEEN s.first_seq AND s.last_seq ORDER BY s.topic));
