-- name: select_position
SELECT tip, entry_count FROM threads WHERE id = :id FOR NO KEY UPDATE;

-- name: search_threads
SELECT t.*, e.text AS hit, e.id AS hit_id, e.role AS hit_role
FROM threads t
LEFT JOIN entries e ON e.thread_id = t.id AND e.seq = (
    SELECT max(x.seq) FROM entries x
    WHERE x.thread_id = t.id AND x.role IN ('user', 'assistant')
      AND lower(x.text COLLATE letters) LIKE lower(CAST(:pattern AS TEXT) COLLATE letters) ESCAPE '\'
      AND NOT EXISTS (
          SELECT 1 FROM entries v
          WHERE v.thread_id = x.thread_id AND v.replaces = coalesce(x.replaces, x.seq) AND v.seq > x.seq
      )
)
WHERE t.user_id = :user_id
  AND (e.seq IS NOT NULL OR lower(t.title COLLATE letters) LIKE lower(CAST(:pattern AS TEXT) COLLATE letters) ESCAPE '\'
       OR EXISTS (SELECT 1 FROM TAGS_IN[t.tags] tag
                  WHERE lower(tag.value COLLATE letters) LIKE lower(CAST(:pattern AS TEXT) COLLATE letters) ESCAPE '\'))
  AND CASE WHEN CAST(:tag AS TEXT) = '' THEN TRUE
           ELSE EXISTS (SELECT 1 FROM TAGS_IN[t.tags] tag WHERE tag.value = CAST(:tag AS TEXT)) END
  AND (CAST(:archived AS BIGINT) = 1 OR (t.archived_at IS NULL) = (CAST(:archived AS BIGINT) = 0))
ORDER BY t.updated_at DESC, t.id DESC
LIMIT :limit;

-- name: search_titles
SELECT * FROM threads
WHERE user_id = :user_id AND lower(title COLLATE letters) LIKE lower(CAST(:pattern AS TEXT) COLLATE letters) ESCAPE '\'
ORDER BY updated_at DESC, id DESC
LIMIT :limit;
