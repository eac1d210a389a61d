-- name: insert_key
INSERT INTO access_keys
    (id, user_id, name, key_hash, scopes, agents, models, sources, expires_at, budget, budget_unit, budget_period,
     requests_per_minute, parallel, made_at)
VALUES
    (:id, :user_id, :name, :key_hash, :scopes, :agents, :models, :sources, :expires_at, :budget, :budget_unit,
     :budget_period, :requests_per_minute, :parallel, :now)
ON CONFLICT DO NOTHING;

-- name: select_key
SELECT k.*, u.name AS user_name FROM access_keys k JOIN access_users u ON u.id = k.user_id WHERE k.id = :id;

-- name: select_keys
SELECT k.*, u.name AS user_name FROM access_keys k JOIN access_users u ON u.id = k.user_id
WHERE k.revoked_at IS NULL ORDER BY k.made_at, k.id;

-- name: select_keys_of_user
SELECT k.*, u.name AS user_name FROM access_keys k JOIN access_users u ON u.id = k.user_id
WHERE k.user_id = :user_id AND k.revoked_at IS NULL ORDER BY k.made_at, k.id;

-- name: revoke_key
UPDATE access_keys SET revoked_at = :now WHERE id = :id AND user_id = :user_id AND revoked_at IS NULL;

-- name: touch_key
UPDATE access_keys SET seen_at = :now WHERE id = :id AND (seen_at IS NULL OR seen_at < :before);

-- name: count_runs_of_key
SELECT count(*) AS n FROM runs WHERE status = 'running' AND waiting_since IS NULL AND key_id = :key_id;

-- name: select_names_of_keys
SELECT id, name FROM access_keys;

-- name: count_workers
SELECT count(*) AS n FROM workers;
