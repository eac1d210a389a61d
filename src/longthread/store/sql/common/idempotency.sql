-- name: insert_idempotency_key
INSERT INTO idempotency_keys (user_id, key, request, thread_id, run_id, created_at)
VALUES (:user_id, :key, :request, :thread_id, :run_id, :now)
ON CONFLICT DO NOTHING;

-- name: select_idempotency_key
SELECT request, thread_id, run_id FROM idempotency_keys WHERE user_id = :user_id AND key = :key AND created_at >= :since;

-- name: delete_old_idempotency_keys
DELETE FROM idempotency_keys WHERE user_id = :user_id AND created_at < :since;
