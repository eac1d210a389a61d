-- name: insert_user
INSERT INTO access_users (id, name, display, email, role, status, password, created_at)
VALUES (:id, :name, :display, :email, :role, :status, :password, :created_at)
ON CONFLICT DO NOTHING;

-- name: select_user
SELECT * FROM access_users WHERE id = :user_id;

-- name: select_user_by_name
SELECT * FROM access_users WHERE name = :name;

-- name: select_users
SELECT * FROM access_users ORDER BY name;

-- name: count_users
SELECT count(*) AS n FROM access_users;

-- name: select_other_admins
SELECT id FROM access_users WHERE role = 'admin' AND status = 'active' AND id <> :user_id LIMIT 1;

-- name: lock_admins
UPDATE access_users SET role = role WHERE role = 'admin';

-- name: update_user
UPDATE access_users SET
    name = :name, display = :display, email = :email, role = :role, status = :status, password = :password,
    budget = :budget, budget_unit = :budget_unit, budget_period = :budget_period
WHERE id = :user_id;

-- name: touch_user
UPDATE access_users SET seen_at = :now WHERE id = :user_id;

-- name: delete_user
DELETE FROM access_users WHERE id = :user_id;

-- name: save_identity
INSERT INTO access_identities (issuer, subject, user_id, email, email_verified, linked_at)
VALUES (:issuer, :subject, :user_id, :email, FLAG[:email_verified], :now)
ON CONFLICT (issuer, subject) DO UPDATE SET email = excluded.email, email_verified = excluded.email_verified;

-- name: insert_identity
INSERT INTO access_identities (issuer, subject, user_id, email, email_verified, linked_at)
VALUES (:issuer, :subject, :user_id, :email, FLAG[:email_verified], :now)
ON CONFLICT DO NOTHING;

-- name: select_identity
SELECT * FROM access_identities WHERE issuer = :issuer AND subject = :subject;

-- name: select_identities
SELECT * FROM access_identities WHERE user_id = :user_id ORDER BY issuer, subject;

-- name: select_users_by_email
SELECT * FROM access_users WHERE lower(email) = :email ORDER BY id LIMIT 2;

-- name: insert_secret
INSERT INTO access_secrets (name, secret, made_at) VALUES (:name, :secret, :now) ON CONFLICT DO NOTHING;

-- name: select_secret
SELECT secret FROM access_secrets WHERE name = :name;

-- name: insert_group
INSERT INTO access_groups (id, name, origin, issuer, created_at) VALUES (:id, :name, :origin, :issuer, :now)
ON CONFLICT DO NOTHING;

-- name: select_groups
SELECT g.*, (SELECT count(*) FROM access_members m WHERE m.group_id = g.id) AS members
FROM access_groups g ORDER BY g.name;

-- name: select_group_by_name
SELECT * FROM access_groups WHERE name = :name;

-- name: delete_group
DELETE FROM access_groups WHERE id = :group_id;

-- name: delete_grants_to_group
DELETE FROM access_grants WHERE to_kind = 'group' AND to_id = :group_id;

-- name: insert_member
INSERT INTO access_members (group_id, user_id) VALUES (:group_id, :user_id) ON CONFLICT DO NOTHING;

-- name: delete_member
DELETE FROM access_members WHERE group_id = :group_id AND user_id = :user_id;

-- name: select_members
SELECT u.* FROM access_members m JOIN access_users u ON u.id = m.user_id WHERE m.group_id = :group_id ORDER BY u.name;

-- name: select_groups_of_user
SELECT g.* FROM access_members m JOIN access_groups g ON g.id = m.group_id WHERE m.user_id = :user_id ORDER BY g.name;

-- name: select_projects_of_user
SELECT project_id, may FROM access_project_members WHERE user_id = :user_id ORDER BY project_id;

-- name: insert_session
INSERT INTO access_sessions (id_hash, user_id, made_at, seen_at, expires_at, ends_at, address, agent, via, issuer)
VALUES (:id_hash, :user_id, :now, :now, :expires_at, :ends_at, :address, :agent, :via, :issuer);

-- name: select_session
SELECT * FROM access_sessions WHERE id_hash = :id_hash AND expires_at > :now AND ends_at > :now;

-- name: select_sessions
SELECT * FROM access_sessions WHERE user_id = :user_id AND expires_at > :now AND ends_at > :now
ORDER BY seen_at DESC, id_hash;

-- name: touch_session
UPDATE access_sessions SET seen_at = :now, expires_at = :expires_at WHERE id_hash = :id_hash;

-- name: delete_session
DELETE FROM access_sessions WHERE id_hash = :id_hash;

-- name: delete_sessions_of_user
DELETE FROM access_sessions WHERE user_id = :user_id AND id_hash <> :kept;

-- name: delete_ended_sessions
DELETE FROM access_sessions WHERE expires_at <= :now OR ends_at <= :now;

-- name: save_link
INSERT INTO access_links (token_hash, kind, user_id, created_at, expires_at)
VALUES (:token_hash, :kind, :user_id, :now, :expires_at) ON CONFLICT DO NOTHING;

-- name: select_link
SELECT * FROM access_links WHERE token_hash = :token_hash AND expires_at > :now;

-- name: select_setup_link
SELECT * FROM access_links WHERE kind = 'setup';

-- name: delete_link
DELETE FROM access_links WHERE token_hash = :token_hash AND expires_at > :now;

-- name: delete_links_of_user
DELETE FROM access_links WHERE user_id = :user_id;

-- name: delete_setup_link
DELETE FROM access_links WHERE kind = 'setup';

-- name: select_tries
SELECT kind, failures, until_at FROM access_tries
WHERE (kind = 'account' AND subject = :account) OR (kind = 'address' AND subject = :address);

-- name: save_try
INSERT INTO access_tries (kind, subject, failures, until_at) VALUES (:kind, :subject, 1, :now)
ON CONFLICT (kind, subject) DO UPDATE SET failures = access_tries.failures + 1;

-- name: update_try
UPDATE access_tries SET until_at = :until_at WHERE kind = :kind AND subject = :subject;

-- name: delete_tries
DELETE FROM access_tries WHERE kind = :kind AND subject = :subject;

-- name: take_back_try
UPDATE access_tries SET failures = failures - 1, until_at = :now
WHERE kind = 'address' AND subject = :subject AND failures > 0;

-- name: delete_old_tries
DELETE FROM access_tries WHERE until_at < :before;
