-- name: select_grants_of_user
-- What is granted to a user, to a group of the user's, or to everyone.
SELECT kind, item, may FROM access_grants
WHERE to_kind = 'everyone'
   OR (to_kind = 'user' AND to_id = :user_id)
   OR (to_kind = 'group' AND to_id IN (SELECT group_id FROM access_members WHERE user_id = :user_id));

-- name: select_grants
SELECT g.*, coalesce(u.name, t.name) AS to_name FROM access_grants g
LEFT JOIN access_users u ON g.to_kind = 'user' AND u.id = g.to_id
LEFT JOIN access_groups t ON g.to_kind = 'group' AND t.id = g.to_id
ORDER BY g.kind, g.item, g.to_kind, to_name, g.to_id;

-- name: save_grant
INSERT INTO access_grants (kind, item, to_kind, to_id, may, granted_by, granted_at)
VALUES (:kind, :item, :to_kind, :to_id, :may, :granted_by, :now)
ON CONFLICT (kind, item, to_kind, to_id) DO UPDATE
SET may = excluded.may, granted_by = excluded.granted_by, granted_at = excluded.granted_at;

-- name: delete_grant
DELETE FROM access_grants
WHERE kind = :kind AND item = :item AND to_kind = :to_kind AND to_id = :to_id AND may <> 'none';

-- name: delete_grants_of_item
DELETE FROM access_grants WHERE kind = :kind AND item = :item;

-- name: delete_grants_to_user
DELETE FROM access_grants WHERE to_kind = 'user' AND to_id = :user_id;

-- name: select_group
SELECT * FROM access_groups WHERE id = :group_id;
