-- name: insert_upload
INSERT INTO access_uploads (id, user_id, name, bytes, made_at) VALUES (:id, :user_id, :name, :bytes, :now);

-- name: select_upload
SELECT user_id FROM access_uploads WHERE id = :id;

-- name: select_uploads_of_user
SELECT id FROM access_uploads WHERE user_id = :user_id ORDER BY id;

-- name: delete_upload
DELETE FROM access_uploads WHERE id = :id;
