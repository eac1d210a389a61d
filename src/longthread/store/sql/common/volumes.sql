-- name: select_volumes
SELECT id, form, entries, words FROM recall_volumes WHERE user_id = :user_id ORDER BY id;

-- name: select_loose_threads
SELECT t.id AS thread_id, t.tip, t.first_seq, t.entry_count, b.volume,
       coalesce(sum(s.entries), 0) AS entries, coalesce(sum(s.words), 0) AS words,
       coalesce(sum(s.last_seq - s.first_seq + 1), 0) AS covered, coalesce(min(s.form), 0) AS form
FROM (
    SELECT thread_id FROM recall_loose WHERE user_id = :user_id
    UNION SELECT CAST(:also AS TEXT)
) l JOIN threads t ON t.id = l.thread_id
    LEFT JOIN recall_bound b ON b.thread_id = t.id
    LEFT JOIN recall_segments s ON s.thread_id = t.id
WHERE t.user_id = :user_id
  AND (CAST(:agent_id AS TEXT) IS NULL OR coalesce(t.agent_id, '6c6f6e67-7468-5265-8164-616e616c7973') = :agent_id)
GROUP BY t.id, t.tip, t.first_seq, t.entry_count, b.volume
ORDER BY t.id;

-- name: count_loose_threads
SELECT count(*) AS loose FROM recall_loose l JOIN threads t ON t.id = l.thread_id
WHERE l.user_id = :user_id AND t.entry_count - t.first_seq < :most;

-- name: select_users_with_loose
SELECT DISTINCT user_id FROM recall_loose ORDER BY user_id;

-- name: insert_volume
INSERT INTO recall_volumes (user_id, id, form, entries, words, members)
VALUES (:user_id, :id, :form, :entries, :words, :members);

-- name: insert_volume_postings
INSERT INTO recall_volume_postings (user_id, bucket, volume, data) VALUES (:user_id, :bucket, :volume, :data);

-- name: insert_bound_thread
INSERT INTO recall_bound (thread_id, user_id, volume) VALUES (:thread_id, :user_id, :volume);

-- name: delete_loose_thread
DELETE FROM recall_loose WHERE thread_id = :thread_id;

-- name: delete_volume
DELETE FROM recall_volumes WHERE user_id = :user_id AND id = :id;

-- name: select_volume_members
SELECT id, members FROM recall_volumes
WHERE user_id = :user_id AND id AMONG_TEXTS[:volumes];

-- name: select_volume_postings bulky
SELECT volume, bucket, data FROM recall_volume_postings
WHERE user_id = :user_id AND bucket AMONG_NUMBERS[:buckets]
ORDER BY volume, bucket;

-- name: select_bindable_threads
SELECT t.id, coalesce(t.agent_id, '6c6f6e67-7468-5265-8164-616e616c7973') AS agent_id, t.first_seq, t.entry_count,
       t.incarnation, b.volume
FROM threads t LEFT JOIN recall_bound b ON b.thread_id = t.id
WHERE t.user_id = :user_id AND t.id AMONG_TEXTS[:threads]
ORDER BY t.id;

-- name: select_tips
SELECT id, tip, entry_count FROM threads
WHERE user_id = :user_id AND id AMONG_TEXTS[:threads];
