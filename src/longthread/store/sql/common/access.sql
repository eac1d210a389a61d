-- name: save_provider_key
INSERT INTO provider_keys (user_id, provider, sealed, set_at) VALUES (:user_id, :provider, :sealed, :now)
ON CONFLICT (user_id, provider) DO UPDATE SET sealed = excluded.sealed, set_at = excluded.set_at;

-- name: select_provider_keys
SELECT provider, sealed, set_at FROM provider_keys WHERE user_id = :user_id ORDER BY provider;

-- name: delete_provider_key
DELETE FROM provider_keys WHERE user_id = :user_id AND provider = :provider;

-- name: insert_share
INSERT INTO share_links (thread_id, id, token_hash, user_id, tip, run_id, created_at, expires_at)
VALUES (:thread_id, :id, :token_hash, :user_id, :tip, :run_id, :created_at, :expires_at);

-- name: select_shares
SELECT * FROM share_links
WHERE thread_id = :thread_id AND (expires_at IS NULL OR expires_at > :now) ORDER BY created_at, id;

-- name: select_share
SELECT * FROM share_links WHERE token_hash = :token_hash AND (expires_at IS NULL OR expires_at > :now);

-- name: delete_share
DELETE FROM share_links WHERE thread_id = :thread_id AND id = :id;

-- name: delete_expired_shares
DELETE FROM share_links WHERE thread_id = :thread_id AND expires_at <= :now;
