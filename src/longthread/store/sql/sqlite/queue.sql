-- name: lock_user
-- SQLite has one writer at a time.
SELECT 1 AS locked WHERE :user_id IS NOT NULL;
