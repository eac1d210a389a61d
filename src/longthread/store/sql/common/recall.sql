-- name: select_recall_threads
-- What is searched, and how much of it is indexed. None of another user's, whatever is asked for. A thread without an
-- agent's id is the built-in analyst's, here and wherever an agent is asked for.
SELECT t.id AS thread_id, t.tip, t.first_seq, t.entry_count,
       coalesce(sum(s.entries), 0) AS entries, coalesce(sum(s.words), 0) AS words,
       coalesce(sum(s.last_seq - s.first_seq + 1), 0) AS covered, coalesce(min(s.form), 0) AS form
FROM threads t LEFT JOIN recall_segments s ON s.thread_id = t.id
WHERE t.user_id = :user_id
  AND (CAST(:agent_id AS TEXT) IS NULL OR coalesce(t.agent_id, '6c6f6e67-7468-5265-8164-616e616c7973') = :agent_id)
GROUP BY t.id, t.tip, t.first_seq, t.entry_count
ORDER BY t.id;

-- name: select_recall_thread
SELECT t.id AS thread_id, t.tip, t.first_seq, t.entry_count,
       coalesce(sum(s.entries), 0) AS entries, coalesce(sum(s.words), 0) AS words,
       coalesce(sum(s.last_seq - s.first_seq + 1), 0) AS covered, coalesce(min(s.form), 0) AS form
FROM threads t LEFT JOIN recall_segments s ON s.thread_id = t.id
WHERE t.id = :thread_id AND t.user_id = :user_id
  AND (CAST(:agent_id AS TEXT) IS NULL OR coalesce(t.agent_id, '6c6f6e67-7468-5265-8164-616e616c7973') = :agent_id)
GROUP BY t.id, t.tip, t.first_seq, t.entry_count;

-- name: select_recall_segments
SELECT thread_id, first_seq, last_seq, form, entries FROM recall_segments
WHERE thread_id = :thread_id ORDER BY first_seq;

-- name: select_segments_between
SELECT thread_id, first_seq, last_seq, form, entries, words, times FROM recall_segments
WHERE thread_id = :thread_id AND first_seq BETWEEN :first AND :last ORDER BY first_seq;

-- name: select_buckets_between
-- In no order: a segment's buckets hold different terms.
SELECT segment, data FROM recall_postings
WHERE thread_id = :thread_id AND bucket < :below AND segment BETWEEN :first AND :last;

-- name: select_incarnation
SELECT incarnation FROM threads WHERE id = :thread_id;

-- name: select_recall_times
SELECT s.thread_id, s.first_seq, s.times FROM threads t JOIN recall_segments s ON s.thread_id = t.id
WHERE t.user_id = :user_id AND (CAST(:thread_id AS TEXT) IS NULL OR t.id = :thread_id)
  AND (CAST(:agent_id AS TEXT) IS NULL OR coalesce(t.agent_id, '6c6f6e67-7468-5265-8164-616e616c7973') = :agent_id)
ORDER BY s.thread_id, s.first_seq;

-- name: select_recall_texts
-- Large payloads one by one: many files may be attached to what is read together.
SELECT seq, role, name, text, tool_calls, metadata, created_at,
    CASE WHEN length(payload) <= :most THEN payload END AS payload, COALESCE(length(payload), 0) AS size
FROM entries WHERE thread_id = :thread_id AND seq BETWEEN :first AND :last ORDER BY seq;

-- name: select_recall_payload
SELECT payload FROM entries WHERE thread_id = :thread_id AND seq = :seq;

-- name: select_entries_apart
SELECT seq, parent_seq FROM entries WHERE thread_id = :thread_id AND parent_seq <> seq - 1 ORDER BY seq;

-- name: insert_recall_segment
INSERT INTO recall_segments (thread_id, first_seq, last_seq, form, entries, words, times)
VALUES (:thread_id, :first, :last, :form, :entries, :words, :times);

-- name: insert_recall_postings
INSERT INTO recall_postings (thread_id, bucket, segment, data) VALUES (:thread_id, :bucket, :segment, :data);

-- name: delete_recall_segments
DELETE FROM recall_segments WHERE thread_id = :thread_id AND first_seq BETWEEN :first AND :last;

-- name: delete_recall_postings
DELETE FROM recall_postings
WHERE thread_id = :thread_id AND bucket < :below AND segment BETWEEN :first AND :last;

-- name: prune_recall_segments
DELETE FROM recall_segments WHERE thread_id = :thread_id AND first_seq < :cut;

-- name: prune_recall_postings
DELETE FROM recall_postings WHERE thread_id = :thread_id AND segment < :cut;

-- name: prune_vectors
DELETE FROM memory_vectors WHERE thread_id = :thread_id AND seq < :cut;

-- name: prune_signatures
DELETE FROM recall_signatures WHERE thread_id = :thread_id AND block * 1024 < :cut;

-- name: select_recall_postings bulky
SELECT p.thread_id, p.segment, p.bucket, p.data FROM recall_postings p
WHERE p.thread_id = :thread_id AND p.bucket AMONG_NUMBERS[:buckets]
  AND EXISTS (SELECT 1 FROM threads t WHERE t.id = :thread_id AND t.user_id = :user_id)
ORDER BY p.segment, p.bucket;

-- name: select_entries_at
SELECT e.*, (SELECT first_seq FROM threads WHERE id = :thread_id) AS first_seq
FROM entries e
WHERE e.thread_id = :thread_id AND e.seq AMONG_NUMBERS[:seqs] ORDER BY e.seq;

-- name: select_recall_texts_at
SELECT seq, role, name, text, tool_calls, metadata, created_at,
    CASE WHEN length(payload) <= :most THEN payload END AS payload, COALESCE(length(payload), 0) AS size
FROM entries WHERE thread_id = :thread_id AND seq AMONG_NUMBERS[:seqs] ORDER BY seq;
