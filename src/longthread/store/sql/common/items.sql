-- name: select_item
SELECT * FROM items
WHERE user_id = :user_id AND namespace = :namespace AND key = :key
  AND (expires_at IS NULL OR expires_at > :alive_at);

-- name: select_items
-- The next ones behind (`updated_at`, `after_namespace`, `after_key`), the newest first.
SELECT * FROM items
WHERE user_id = :user_id AND (namespace = :namespace OR (namespace >= :first AND namespace < :last))
  AND (expires_at IS NULL OR expires_at > :alive_at)
  AND updated_at <= :updated_at
  AND (updated_at < :updated_at OR namespace > :after_namespace
       OR (namespace = :after_namespace AND key > :after_key))
ORDER BY updated_at DESC, namespace, key
LIMIT :limit;

-- name: count_items
SELECT count(*) AS items, CAST(coalesce(sum(words), 0) AS BIGINT) AS words FROM items
WHERE user_id = :user_id AND (namespace = :namespace OR (namespace >= :first AND namespace < :last))
  AND words > 0;

-- name: count_items_of_user
SELECT count(*) AS items FROM items WHERE user_id = :user_id;

-- name: select_item_namespaces
SELECT DISTINCT namespace FROM items
WHERE user_id = :user_id AND (expires_at IS NULL OR expires_at > :alive_at)
ORDER BY namespace;

-- name: select_stale_items
SELECT * FROM items
WHERE user_id = :user_id AND (namespace = :namespace OR (namespace >= :first AND namespace < :last))
  AND (form <> :form OR (CAST(:embedded AS TEXT) IS NOT NULL AND embedded <> :embedded))
ORDER BY updated_at DESC, namespace, key
LIMIT :limit;

-- name: upsert_item
INSERT INTO items (user_id, namespace, key, value, created_at, updated_at, expires_at, ttl_minutes, fields, form,
                   words, embedded)
VALUES (:user_id, :namespace, :key, :value, :created_at, :updated_at, :expires_at, :ttl_minutes, :fields, :form,
        :words, :embedded)
ON CONFLICT (user_id, namespace, key) DO UPDATE SET
    value = excluded.value, updated_at = excluded.updated_at, expires_at = excluded.expires_at,
    ttl_minutes = excluded.ttl_minutes, fields = excluded.fields, form = excluded.form, words = excluded.words,
    embedded = excluded.embedded;

-- name: index_item
-- Unless it has changed since it was read.
UPDATE items SET form = :form, words = :words, embedded = :embedded
WHERE user_id = :user_id AND namespace = :namespace AND key = :key AND updated_at = :updated_at;

-- name: refresh_item
UPDATE items SET expires_at = :expires_at
WHERE user_id = :user_id AND namespace = :namespace AND key = :key AND ttl_minutes IS NOT NULL
  AND expires_at < :expires_at;

-- name: delete_item
DELETE FROM items WHERE user_id = :user_id AND namespace = :namespace AND key = :key;

-- name: select_expired_items
SELECT namespace, key FROM items
WHERE user_id = :user_id AND expires_at IS NOT NULL AND expires_at <= :now
ORDER BY namespace, key LIMIT :limit;

-- name: delete_expired_item
DELETE FROM items
WHERE user_id = :user_id AND namespace = :namespace AND key = :key AND expires_at IS NOT NULL AND expires_at <= :now;

-- name: delete_item_terms
DELETE FROM item_terms WHERE user_id = :user_id AND namespace = :namespace AND key = :key;

-- name: insert_item_term
INSERT INTO item_terms (user_id, term, namespace, key, count) VALUES (:user_id, :term, :namespace, :key, :count);

-- name: delete_item_vectors
DELETE FROM item_vectors WHERE user_id = :user_id AND namespace = :namespace AND key = :key;

-- name: select_item_terms
SELECT t.term, t.namespace, t.key, t.count, i.words
FROM item_terms t JOIN items i ON i.user_id = t.user_id AND i.namespace = t.namespace AND i.key = t.key
WHERE t.user_id = :user_id AND t.term AMONG_NUMBERS[:terms]
  AND (t.namespace = :namespace OR (t.namespace >= :first AND t.namespace < :last));
