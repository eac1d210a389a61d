-- name: insert_worker
INSERT INTO workers (id, started_at, renewed_at)
VALUES (:id, :now, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));

-- name: renew_worker
UPDATE workers SET renewed_at = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) WHERE id = :id;
