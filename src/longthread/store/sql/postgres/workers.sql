-- name: insert_worker
INSERT INTO workers (id, started_at, renewed_at)
VALUES (:id, :now, CAST(extract(epoch FROM now()) * 1000 AS BIGINT));

-- name: renew_worker
UPDATE workers SET renewed_at = CAST(extract(epoch FROM now()) * 1000 AS BIGINT) WHERE id = :id;
