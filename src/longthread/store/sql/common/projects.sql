-- name: insert_project
INSERT INTO access_projects (id, name, instructions, sources, created_by, created_at, updated_at)
VALUES (:id, :name, :instructions, :sources, :created_by, :now, :now);

-- name: select_project
SELECT * FROM access_projects WHERE id = :project_id;

-- name: select_all_projects
SELECT p.*, (SELECT count(*) FROM access_project_members m WHERE m.project_id = p.id) AS members
FROM access_projects p ORDER BY p.name, p.id;

-- name: select_membership
SELECT p.*, m.may FROM access_projects p JOIN access_project_members m ON m.project_id = p.id
WHERE p.id = :project_id AND m.user_id = :user_id;

-- name: select_memberships
SELECT p.*, m.may FROM access_projects p JOIN access_project_members m ON m.project_id = p.id
WHERE m.user_id = :user_id ORDER BY p.name, p.id;

-- name: lock_project
UPDATE access_projects SET updated_at = updated_at WHERE id = :project_id;

-- name: update_project
UPDATE access_projects SET name = :name, instructions = :instructions, sources = :sources, updated_at = :now
WHERE id = :project_id;

-- name: delete_project
DELETE FROM access_projects WHERE id = :project_id;

-- name: select_project_members
-- Without a login, a member is no row of `access_users`.
SELECT m.user_id, m.may, m.added_at, coalesce(u.name, m.user_id) AS name, coalesce(u.display, '') AS display
FROM access_project_members m LEFT JOIN access_users u ON u.id = m.user_id
WHERE m.project_id = :project_id ORDER BY m.added_at, m.user_id;

-- name: save_project_member
INSERT INTO access_project_members (project_id, user_id, may, added_at)
VALUES (:project_id, :user_id, :may, :now)
ON CONFLICT (project_id, user_id) DO UPDATE SET may = excluded.may;

-- name: delete_project_member
DELETE FROM access_project_members WHERE project_id = :project_id AND user_id = :user_id;

-- name: promote_oldest_members
-- Of each project that only this user manages, who was a member longest.
UPDATE access_project_members SET may = 'manage'
WHERE user_id = (
      SELECT o.user_id FROM access_project_members o
      WHERE o.project_id = access_project_members.project_id AND o.user_id <> :user_id
      ORDER BY o.added_at, o.user_id LIMIT 1
  )
  AND EXISTS (
      SELECT 1 FROM access_project_members g
      WHERE g.project_id = access_project_members.project_id AND g.user_id = :user_id
  )
  AND NOT EXISTS (
      SELECT 1 FROM access_project_members x
      WHERE x.project_id = access_project_members.project_id AND x.may = 'manage' AND x.user_id <> :user_id
  );

-- name: delete_memberships
DELETE FROM access_project_members WHERE user_id = :user_id;

-- name: delete_project_members
DELETE FROM access_project_members WHERE project_id = :project_id;

-- name: count_conversations
SELECT (SELECT count(*) FROM threads WHERE user_id = :user_id AND parent_thread_id IS NULL)
     + (SELECT count(*) FROM pending_deletions WHERE user_id = :user_id AND thread_id = root) AS conversations;

-- name: select_place_of_thread
-- Whose a thread is, or was until it was deleted, which can be undone for a while.
SELECT coalesce(p.user_id, t.user_id) AS user_id FROM threads t LEFT JOIN pending_deletions p ON p.thread_id = t.id
WHERE t.id = :thread_id;

-- name: select_first_asker
SELECT asker FROM runs WHERE thread_id = :thread_id ORDER BY id LIMIT 1;

-- name: revoke_shares_of_thread
DELETE FROM share_links WHERE thread_id = :thread_id;

-- name: forget_memory_uses
-- What its runs were given of another user's memories stays that one's.
DELETE FROM memory_uses WHERE session_id = :thread_id;

-- name: select_names_of_users
SELECT id, name, display FROM access_users WHERE id AMONG_TEXTS[:ids];
