-- name: select_items_at
SELECT i.* FROM json_each(:places) p CROSS JOIN items i
WHERE i.user_id = :user_id AND i.namespace = json_extract(p.value, '$[0]') AND i.key = json_extract(p.value, '$[1]')
  AND (i.expires_at IS NULL OR i.expires_at > :alive_at);

-- name: insert_item_vector
INSERT INTO item_vectors (user_id, namespace, key, field, embedding)
VALUES (:user_id, :namespace, :key, :field, :embedding);

-- name: select_item_vectors
SELECT v.namespace, v.key, v.embedding, 0 AS sent
FROM item_vectors v JOIN items i ON i.user_id = v.user_id AND i.namespace = v.namespace AND i.key = v.key
WHERE v.user_id = :user_id AND (v.namespace = :namespace OR (v.namespace >= :first AND v.namespace < :last))
  AND i.embedded = :embedded AND length(v.embedding) = 4 * :dims;
