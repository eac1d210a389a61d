-- What a backup says of itself: two tables that no store has. Their rows are written when all others are.

-- name: create_backup
CREATE TABLE longthread_backup (made_at TEXT NOT NULL, threads INTEGER NOT NULL);

-- name: create_backup_tables
CREATE TABLE longthread_backup_tables (name TEXT PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, sha256 TEXT NOT NULL);

-- name: insert_backup
INSERT INTO longthread_backup (made_at, threads) VALUES (:made_at, :threads);

-- name: insert_backup_table
INSERT INTO longthread_backup_tables (name, rows, sha256) VALUES (:name, :rows, :sha256);

-- name: select_backup_is_there
SELECT 1 AS there FROM sqlite_master WHERE name = 'longthread_backup_tables';

-- name: select_backup
SELECT made_at, threads FROM longthread_backup;

-- name: select_backup_tables
SELECT name, rows, sha256 FROM longthread_backup_tables ORDER BY name;
