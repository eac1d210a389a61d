-- name: select_items_at
SELECT i.* FROM json_each(:places) p CROSS JOIN items i
WHERE i.user_id = :user_id AND i.namespace = json_extract(p.value, '$[0]') AND i.key = json_extract(p.value, '$[1]')
  AND (i.expires_at IS NULL OR i.expires_at > :alive_at);

-- name: select_item_terms
SELECT t.term, t.namespace, t.key, t.count, i.words
FROM item_terms t JOIN items i ON i.user_id = t.user_id AND i.namespace = t.namespace AND i.key = t.key
WHERE t.user_id = :user_id AND t.term IN (SELECT value FROM json_each(:terms))
  AND (t.namespace = :namespace OR (t.namespace >= :first AND t.namespace < :last));

-- name: insert_item_vector
INSERT INTO item_vectors (user_id, namespace, key, field, embedding)
VALUES (:user_id, :namespace, :key, :field, :embedding);

-- name: select_item_vectors
SELECT v.namespace, v.key, v.embedding, 0 AS sent
FROM item_vectors v JOIN items i ON i.user_id = v.user_id AND i.namespace = v.namespace AND i.key = v.key
WHERE v.user_id = :user_id AND (v.namespace = :namespace OR (v.namespace >= :first AND v.namespace < :last))
  AND i.embedded = :embedded AND length(v.embedding) = 4 * :dims;
