-- name: save_provider_key
INSERT INTO provider_keys (user_id, provider, sealed, set_at) VALUES (:user_id, :provider, :sealed, :now)
ON CONFLICT (user_id, provider) DO UPDATE SET sealed = excluded.sealed, set_at = excluded.set_at;

-- name: select_provider_keys
SELECT provider, sealed, set_at FROM provider_keys WHERE user_id = :user_id ORDER BY provider;

-- name: delete_provider_key
DELETE FROM provider_keys WHERE user_id = :user_id AND provider = :provider;
