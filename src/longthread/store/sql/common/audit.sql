-- name: insert_audit
INSERT INTO access_audit
    (id, at, actor, on_behalf, via, address, action, object, outcome, request_id, detail)
VALUES (:id, :at, :actor, :on_behalf, :via, :address, :action, :object, :outcome, :request_id, :detail);

-- name: select_audit
SELECT a.*, u.name AS actor_name FROM access_audit a LEFT JOIN access_users u ON u.id = a.actor
WHERE a.id < :before AND a.at >= :since AND a.at < :until
  AND (a.actor = :actor OR :actor = '') AND (a.action = :action OR :action = '')
ORDER BY a.id DESC
LIMIT :limit;

-- name: select_audit_about
SELECT a.*, u.name AS actor_name FROM access_audit a LEFT JOIN access_users u ON u.id = a.actor
WHERE a.actor = :user_id OR a.on_behalf = :user_id OR a.object = :user_id
ORDER BY a.id DESC;

-- name: forget_actor
-- What a person did stays, without the ids of what was the person's own.
UPDATE access_audit SET
    actor = :pseudonym, address = '',
    on_behalf = CASE WHEN on_behalf = :user_id THEN :pseudonym ELSE on_behalf END,
    object = CASE
        WHEN object = :user_id THEN :pseudonym
        WHEN action IN (
            'share.make', 'share.revoke', 'upload.add', 'upload.delete', 'conversation.export', 'conversation.delete',
            'approval.decide', 'key.make', 'key.revoke', 'session.end'
        ) THEN ''
        ELSE object
    END
WHERE actor = :user_id;

-- name: forget_audit_object
-- What others did to a person, or read of the person's. Without an actor it was a login that failed.
UPDATE access_audit SET
    address = CASE WHEN actor = '' THEN '' ELSE address END,
    object = CASE WHEN on_behalf = :user_id THEN '' ELSE :pseudonym END,
    on_behalf = CASE WHEN on_behalf = :user_id THEN :pseudonym ELSE on_behalf END
WHERE object = :user_id OR on_behalf = :user_id;

-- name: forget_audit_detail
-- As in a grant to the person: a value of the JSON.
UPDATE access_audit SET detail = replace(detail, '"' || :user_id || '"', '"' || :pseudonym || '"')
WHERE replace(detail, '"' || :user_id || '"', '') <> detail;

-- name: delete_old_audit
DELETE FROM access_audit WHERE at < :before;

-- name: forget_granter
UPDATE access_grants SET granted_by = :pseudonym WHERE granted_by = :user_id;

-- name: forget_project_maker
UPDATE access_projects SET created_by = :pseudonym WHERE created_by = :user_id;

-- name: forget_asker
-- In conversations of projects, which stay.
UPDATE runs SET asker = :pseudonym, key_id = NULL WHERE asker = :user_id;

-- name: forget_queued_asker
UPDATE queued_questions SET asker = :pseudonym, key_id = NULL WHERE asker = :user_id;

-- name: forget_decider
UPDATE approvals SET decided_by = :pseudonym WHERE decided_by = :user_id;
