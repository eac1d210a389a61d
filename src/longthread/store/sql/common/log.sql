-- name: insert_thread
INSERT INTO threads (id, user_id, title, source, created_at, updated_at)
VALUES (:id, :user_id, :title, :source, :now, :now)
ON CONFLICT (id) DO NOTHING;

-- name: select_thread
SELECT * FROM threads WHERE id = :id AND user_id = :user_id;

-- name: select_threads
SELECT * FROM threads
WHERE user_id = :user_id AND (updated_at, id) < (:before, :before_id)
  AND (parent_thread_id IS NULL OR CAST(:below AS BIGINT) = 1)
  AND (CAST(:archived AS BIGINT) = 1 OR (archived_at IS NULL) = (CAST(:archived AS BIGINT) = 0))
  AND metadata LIKE CAST(:noted AS TEXT)
  AND CASE WHEN CAST(:tag AS TEXT) = '' THEN TRUE
           ELSE EXISTS (SELECT 1 FROM TAGS_IN[tags] tag WHERE tag.value = CAST(:tag AS TEXT)) END
ORDER BY updated_at DESC, id DESC
LIMIT :limit;

-- name: select_tags
SELECT tag.value AS tag, count(*) AS threads
FROM threads t, TAGS_IN[t.tags] tag
WHERE t.user_id = :user_id AND t.tags <> '[]' AND t.archived_at IS NULL AND t.parent_thread_id IS NULL
GROUP BY tag.value
ORDER BY threads DESC, tag
LIMIT :limit;

-- name: select_threads_by_prefix
SELECT * FROM threads WHERE user_id = :user_id AND id >= :first AND id < :last ORDER BY id LIMIT :limit;

-- name: set_parent
UPDATE threads SET parent_thread_id = :parent WHERE id = :id AND entry_count = 0;

-- name: select_children
SELECT * FROM threads WHERE parent_thread_id = :id AND user_id = :user_id ORDER BY created_at, id;

-- name: select_threads_below
-- Those nearer first. What another program wrote may go round in a circle: no deeper than this is looked.
WITH RECURSIVE below (id, updated_at, depth) AS (
    SELECT id, updated_at, 1 FROM threads WHERE parent_thread_id = :id AND user_id = :user_id
    UNION ALL
    SELECT t.id, t.updated_at, b.depth + 1
    FROM below b JOIN threads t ON t.parent_thread_id = b.id AND t.user_id = :user_id
    WHERE b.depth < 100
)
SELECT id, max(updated_at) AS updated_at FROM below WHERE id <> :id GROUP BY id ORDER BY min(depth), id;

-- name: count_threads_above
WITH RECURSIVE above (parent, depth) AS (
    SELECT parent_thread_id, 0 FROM threads WHERE id = :id
    UNION ALL
    SELECT t.parent_thread_id, a.depth + 1 FROM above a JOIN threads t ON t.id = a.parent WHERE a.depth < 100
)
SELECT max(depth) AS depth FROM above;

-- name: search_threads
SELECT t.*, e.text AS hit, e.id AS hit_id, e.role AS hit_role
FROM threads t
LEFT JOIN entries e ON e.thread_id = t.id AND e.seq = (
    SELECT max(x.seq) FROM entries x
    WHERE x.thread_id = t.id AND x.role IN ('user', 'assistant') AND lower(x.text) LIKE lower(:pattern) ESCAPE '\'
      -- What was replaced under the same id is found no more.
      AND NOT EXISTS (
          SELECT 1 FROM entries v
          WHERE v.thread_id = x.thread_id AND v.replaces = coalesce(x.replaces, x.seq) AND v.seq > x.seq
      )
)
WHERE t.user_id = :user_id
  AND (e.seq IS NOT NULL OR lower(t.title) LIKE lower(:pattern) ESCAPE '\'
       OR EXISTS (SELECT 1 FROM TAGS_IN[t.tags] tag WHERE lower(tag.value) LIKE lower(:pattern) ESCAPE '\'))
  AND CASE WHEN CAST(:tag AS TEXT) = '' THEN TRUE
           ELSE EXISTS (SELECT 1 FROM TAGS_IN[t.tags] tag WHERE tag.value = CAST(:tag AS TEXT)) END
  AND (CAST(:archived AS BIGINT) = 1 OR (t.archived_at IS NULL) = (CAST(:archived AS BIGINT) = 0))
ORDER BY t.updated_at DESC, t.id DESC
LIMIT :limit;

-- name: search_titles
SELECT * FROM threads
WHERE user_id = :user_id AND lower(title) LIKE lower(:pattern) ESCAPE '\'
ORDER BY updated_at DESC, id DESC
LIMIT :limit;

-- name: update_title
UPDATE threads SET title = :title WHERE id = :id AND user_id = :user_id;

-- name: replace_title
-- A title that was taken from a text, where that is no longer what was said.
UPDATE threads SET title = :title WHERE id = :id AND title = :taken;

-- name: update_own_title
UPDATE threads SET title = :title, metadata = :metadata WHERE id = :id AND user_id = :user_id;

-- name: update_tags
UPDATE threads SET tags = :tags WHERE id = :id AND user_id = :user_id;

-- name: select_tool_categories
SELECT tool_categories FROM threads WHERE id = :id;

-- name: update_tool_categories
UPDATE threads SET tool_categories = :categories WHERE id = :id;

-- name: update_metadata
UPDATE threads SET metadata = :metadata WHERE id = :id AND user_id = :user_id;

-- name: update_expiry
UPDATE threads SET expires_at = :expires_at WHERE id = :id AND user_id = :user_id;

-- name: archive_thread
UPDATE threads SET archived_at = :archived_at WHERE id = :id AND user_id = :user_id;

-- name: update_session_status
UPDATE sessions SET status = :status WHERE id = :id AND user_id = :user_id;

-- name: select_session_statuses
SELECT id, status FROM sessions WHERE id AMONG_TEXTS[:threads];

-- name: save_message_metadata
INSERT INTO message_metadata (thread_id, seq, data) VALUES (:thread_id, :seq, :data)
ON CONFLICT (thread_id, seq) DO UPDATE SET data = excluded.data;

-- name: select_message_metadata
SELECT seq, data FROM message_metadata WHERE thread_id = :thread_id AND seq BETWEEN :first AND :last;

-- name: select_feedback
-- The answers of which a user's people have an opinion, the latest answers first.
SELECT m.data AS noted, e.*, t.first_seq
FROM threads t
JOIN message_metadata m ON m.thread_id = t.id
JOIN entries e ON e.thread_id = m.thread_id AND e.seq = m.seq
WHERE t.user_id = :user_id AND m.data LIKE CAST(:noted AS TEXT)
  AND (CAST(:thread_id AS TEXT) = '' OR t.id = CAST(:thread_id AS TEXT))
  AND (e.created_at, e.id) < (CAST(:before AS TEXT), CAST(:before_id AS TEXT))
ORDER BY e.created_at DESC, e.id DESC
LIMIT :limit;

-- name: update_source
UPDATE threads SET source = :source WHERE id = :id;

-- name: delete_thread
DELETE FROM threads WHERE id = :id AND user_id = :user_id;

-- name: count_entries
SELECT count(*) AS entries FROM entries WHERE thread_id = :thread_id;

-- name: select_naming
-- The thread, if it or an entry of it names an entry that retention has left.
SELECT t.id FROM threads t
WHERE t.id = :thread_id AND t.first_seq <= :seq
  AND (t.tip = :seq OR EXISTS (SELECT 1 FROM entries e WHERE e.thread_id = t.id AND e.parent_seq = :seq));

-- name: select_position
SELECT tip, entry_count FROM threads WHERE id = :id;

-- name: move_tip
UPDATE threads SET tip = :tip, entry_count = :entry_count, updated_at = :now WHERE id = :id;

-- name: advance_tip
-- Times are in an index: one that is newer by less than a moment is not worth another entry in it.
UPDATE threads SET tip = :tip, entry_count = :entry_count,
                   updated_at = CASE WHEN updated_at < :recent THEN :now ELSE updated_at END
WHERE id = :id;

-- name: insert_entry
INSERT INTO entries (thread_id, seq, parent_seq, id, role, text, tool_calls, tool_call_id, name, payload, tokens,
                     latency_ms, run_id, metadata, created_at, replaces)
VALUES (:thread_id, :seq, :parent_seq, :id, :role, :text, :tool_calls, :tool_call_id, :name, :payload, :tokens,
        :latency_ms, :run_id, :metadata, :created_at, :replaces);

-- name: select_entry
-- `first_seq` tells which parents retention has deleted.
SELECT e.*, (SELECT first_seq FROM threads WHERE id = :thread_id) AS first_seq
FROM entries e WHERE e.thread_id = :thread_id AND e.id = :id;

-- name: select_parent
SELECT parent_seq FROM entries WHERE thread_id = :thread_id AND seq = :seq;

-- name: select_ancestor
WITH RECURSIVE up (seq, steps) AS (
    SELECT seq, 0 FROM entries WHERE thread_id = :thread_id AND seq = :seq
    UNION ALL
    SELECT e.parent_seq, up.steps + 1 FROM up JOIN entries e ON e.thread_id = :thread_id AND e.seq = up.seq
    WHERE up.seq > :down_to AND up.steps < :limit
)
SELECT min(seq) AS seq FROM up;

-- name: select_entries_down
-- Bounded on both sides: without statistics PostgreSQL would read the whole thread for a LIMIT, and sort it.
-- `versions` tells whether a message of the thread has several.
SELECT e.*, (SELECT first_seq FROM threads WHERE id = :thread_id) AS first_seq,
       EXISTS (SELECT 1 FROM entries r WHERE r.thread_id = :thread_id AND r.replaces IS NOT NULL) AS versions
FROM entries e WHERE e.thread_id = :thread_id AND e.seq BETWEEN :first AND :seq ORDER BY e.seq DESC LIMIT :limit;

-- name: select_place_before
-- The nearest entry up to `seq` on its branch that takes a place of its own.
WITH RECURSIVE up (seq, parent_seq, replaces) AS (
    SELECT seq, parent_seq, replaces FROM entries WHERE thread_id = :thread_id AND seq = :seq
    UNION ALL
    SELECT e.seq, e.parent_seq, e.replaces FROM up JOIN entries e ON e.thread_id = :thread_id AND e.seq = up.parent_seq
    WHERE up.replaces IS NOT NULL
)
SELECT seq FROM up WHERE replaces IS NULL;

-- name: select_later_versions
-- Per entry from `first` to `last`, its newest version written after `after` and before `before`.
SELECT replaces, max(seq) AS seq FROM entries
WHERE thread_id = :thread_id AND replaces BETWEEN :first AND :last AND seq > :after AND seq < :before
GROUP BY replaces;

-- name: select_versions_before
SELECT e.*, (SELECT first_seq FROM threads WHERE id = :thread_id) AS first_seq
FROM entries e WHERE e.thread_id = :thread_id AND e.replaces = :place AND e.seq < :seq ORDER BY e.seq DESC LIMIT :limit;

-- name: select_replacing
-- Entries that take the place of another one, and whose.
SELECT seq, replaces FROM entries WHERE thread_id = :thread_id AND replaces IS NOT NULL ORDER BY seq;

-- name: select_entries_range
SELECT e.*, (SELECT first_seq FROM threads WHERE id = :thread_id) AS first_seq
FROM entries e WHERE e.thread_id = :thread_id AND e.seq BETWEEN :first AND :last ORDER BY e.seq;

-- name: select_entry
-- `first_seq` tells which parents retention has deleted. A plain comparison of the thread's id could have the whole thread
-- read.
SELECT e.*, (SELECT first_seq FROM threads WHERE id = :thread_id) AS first_seq
FROM entries e
WHERE THREAD_KEY[e.thread_id] || ENTRY_KEY[e.id] = THREAD_KEY[CAST(:thread_id AS TEXT)] || ENTRY_KEY[CAST(:id AS TEXT)]
  AND e.thread_id || '' = :thread_id AND e.id = :id;

-- name: select_entry_seq
SELECT e.seq FROM entries e
WHERE THREAD_KEY[e.thread_id] || ENTRY_KEY[e.id] = THREAD_KEY[CAST(:thread_id AS TEXT)] || ENTRY_KEY[CAST(:id AS TEXT)]
  AND e.thread_id || '' = :thread_id AND e.id = :id;

-- name: select_results_of_calls
SELECT seq FROM entries
WHERE thread_id = :thread_id AND role = 'tool' AND tool_call_id AMONG_TEXTS[:calls] ORDER BY seq;

-- name: select_children_of_entries
SELECT seq, parent_seq FROM entries WHERE thread_id = :thread_id AND parent_seq AMONG_NUMBERS[:seqs] ORDER BY seq;

-- name: move_entry
-- What followed a forgotten message follows the one before that.
UPDATE entries SET parent_seq = :parent WHERE thread_id = :thread_id AND seq = :seq;

-- name: forget_entries
DELETE FROM entries WHERE thread_id = :thread_id AND seq AMONG_NUMBERS[:seqs];

-- name: forget_message_metadata
DELETE FROM message_metadata WHERE thread_id = :thread_id AND seq AMONG_NUMBERS[:seqs];

-- name: forget_fold
-- It is computed again from the entries.
DELETE FROM folds WHERE thread_id = :thread_id;

-- name: forget_tip
UPDATE threads SET tip = :tip, title = :title WHERE id = :thread_id;

-- name: select_whose
-- Whether runs or the gateway refer to a thread's entries.
SELECT EXISTS (SELECT 1 FROM runs WHERE thread_id = :thread_id)
    OR EXISTS (SELECT 1 FROM gateway_calls WHERE thread_id = :thread_id) AS referred;
