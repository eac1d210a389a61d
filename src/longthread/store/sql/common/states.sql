-- name: select_state
SELECT t.user_id, t.title, t.tip, t.entry_count, t.created_at, t.updated_at, t.expires_at,
       c.client_type, c.last_signature, c.access_count
FROM threads t LEFT JOIN thread_clients c ON c.thread_id = t.id
WHERE t.id = :id;

-- name: write_state
UPDATE threads SET updated_at = :now, expires_at = :expires_at WHERE id = :id AND user_id = :user_id;

-- name: write_client
INSERT INTO thread_clients (thread_id, client_type, last_signature) VALUES (:id, :client_type, :signature)
ON CONFLICT (thread_id) DO UPDATE SET client_type = excluded.client_type, last_signature = excluded.last_signature;

-- name: write_state_signature
INSERT INTO thread_clients (thread_id, last_signature) VALUES (:id, :signature)
ON CONFLICT (thread_id) DO UPDATE SET last_signature = excluded.last_signature;

-- name: count_access
INSERT INTO thread_clients (thread_id, access_count) VALUES (:id, 1)
ON CONFLICT (thread_id) DO UPDATE SET access_count = thread_clients.access_count + 1;

-- name: select_expired_threads
-- As far as their times are written in UTC, as Longthread does: the earliest first.
SELECT id FROM threads
WHERE expires_at <= :now AND (CAST(:user_id AS TEXT) IS NULL OR user_id = :user_id)
ORDER BY expires_at, id;
