-- name: foreign_unreadable
SELECT relname AS name FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT has_table_privilege(oid, 'SELECT')
ORDER BY relname COLLATE "C";
