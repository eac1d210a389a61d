-- name: wait_briefly
-- Whoever waits for a table as a whole holds up those who come later.
SET LOCAL lock_timeout = '2s';

-- name: select_primary_keys
SELECT c.relname AS name, x.relname AS key
FROM pg_class c
JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
JOIN pg_class x ON x.oid = i.indexrelid
WHERE c.relnamespace = current_schema()::regnamespace;
