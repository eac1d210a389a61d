-- name: select_pruning
-- What a pass over a thread must know of it.
SELECT t.user_id, t.tip, t.entry_count, t.first_seq AS thread_first, t.incarnation,
       s.summary, s.message_count, s.config_hash, s.first_seq, s.last_seq, s.model, s.digest,
       coalesce(s.digest LIKE '%"unwritten":%', FALSE) AS unwritten
FROM threads t LEFT JOIN conversation_summaries s ON s.thread_id = t.id
WHERE t.id = :thread_id;

-- name: select_entries_apart_between
SELECT seq, parent_seq FROM entries
WHERE thread_id = :thread_id AND parent_seq <> seq - 1 AND seq > :after AND seq <= :last
ORDER BY seq;

-- name: select_live_question
-- The entry that asks what a run is working on, or was when it was broken off.
SELECT question_seq FROM runs WHERE thread_id = :thread_id AND status = 'running' ORDER BY id DESC LIMIT 1;

-- name: save_summary
INSERT INTO conversation_summaries (thread_id, summary, message_count, config_hash, first_seq, last_seq, model, digest)
VALUES (:thread_id, :summary, :message_count, :config_hash, :first_seq, :last_seq, :model, :digest)
ON CONFLICT (thread_id) DO UPDATE SET
    summary = excluded.summary, message_count = excluded.message_count, config_hash = excluded.config_hash,
    first_seq = excluded.first_seq, last_seq = excluded.last_seq, model = excluded.model, digest = excluded.digest;

-- name: outdate_summary
-- A message that a summary tells of is another one now: its text goes, and its mark stays, so that a pass makes it again
-- from the entries. No summary tells of the system message that a branch begins with.
UPDATE conversation_summaries SET summary = '', digest = '{}', config_hash = NULL, model = NULL
WHERE thread_id = :thread_id AND last_seq >= :seq AND NOT EXISTS (
    SELECT 1 FROM entries e
    WHERE e.thread_id = :thread_id AND e.seq = :seq AND e.role = 'system' AND e.parent_seq = 0
      AND CAST(:prompt AS BIGINT) = 0
);

-- name: delete_outdated_topics
DELETE FROM memory_topics WHERE thread_id = :thread_id AND EXISTS (
    SELECT 1 FROM conversation_summaries s WHERE s.thread_id = :thread_id AND s.config_hash IS NULL
);

-- name: delete_outdated_topic_spans
DELETE FROM memory_topic_spans WHERE thread_id = :thread_id AND EXISTS (
    SELECT 1 FROM conversation_summaries s WHERE s.thread_id = :thread_id AND s.config_hash IS NULL
);

-- name: move_mark
UPDATE conversation_summaries SET last_seq = :to WHERE thread_id = :thread_id AND last_seq = :seq;

-- name: delete_summary
DELETE FROM conversation_summaries WHERE thread_id = :thread_id;

-- name: select_summary
SELECT s.summary, s.message_count, s.config_hash, s.first_seq, s.last_seq, s.model,
    CASE WHEN s.model IS NULL THEN s.digest END AS digest,
    coalesce(s.digest LIKE '%"unwritten":%', FALSE) AS unwritten, (
    SELECT LIST_OF[topic] FROM (
        SELECT topic FROM memory_topics WHERE thread_id = :thread_id
        ORDER BY mention_count DESC, last_seen_at DESC, topic LIMIT :topics
    ) AS named
) AS topics
FROM conversation_summaries s WHERE s.thread_id = :thread_id;
