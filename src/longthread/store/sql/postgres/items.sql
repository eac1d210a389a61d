-- name: select_items_at
SELECT i.* FROM json_array_elements(CAST(:places AS JSON)) p
JOIN items i ON i.user_id = :user_id AND i.namespace = p ->> 0 AND i.key = p ->> 1
WHERE i.expires_at IS NULL OR i.expires_at > :alive_at;

-- name: insert_item_vector
INSERT INTO item_vectors (user_id, namespace, key, field, embedding)
VALUES (:user_id, :namespace, :key, :field, CAST(:numbers AS VECTOR));

-- name: select_item_vectors
-- Of each item the vector that is nearest, by the measure that is asked for.
WITH scoped AS MATERIALIZED (
    SELECT v.namespace, v.key, v.embedding,
           CASE CAST(:measure AS TEXT)
               WHEN 'l2' THEN v.embedding <-> CAST(:numbers AS VECTOR)
               WHEN 'inner_product' THEN v.embedding <#> CAST(:numbers AS VECTOR)
               ELSE v.embedding <=> CAST(:numbers AS VECTOR) END AS distance
    FROM item_vectors v JOIN items i ON i.user_id = v.user_id AND i.namespace = v.namespace AND i.key = v.key
    WHERE v.user_id = :user_id AND (v.namespace = :namespace OR (v.namespace >= :first AND v.namespace < :last))
      AND i.embedded = :embedded AND vector_dims(v.embedding) = :dims
), nearest AS (
    SELECT DISTINCT ON (namespace, key) namespace, key, embedding, distance
    FROM scoped ORDER BY namespace, key, distance
)
SELECT namespace, key, vector_send(embedding) AS embedding, 1 AS sent FROM nearest
ORDER BY distance, namespace, key LIMIT :limit;
