-- name: select_database
-- Which one it is, and which schema of it the store is in. The servers of two that come from the same backup have not
-- begun at the same microsecond.
SELECT CAST(pg_postmaster_start_time() AS TEXT) AS server, CAST(current_database() AS TEXT) AS name,
       CAST('threads'::regclass::oid AS BIGINT) AS place;

-- name: select_server
SELECT 'PostgreSQL ' || current_setting('server_version') AS server;

-- name: select_schema
SELECT coalesce(max(number), 0) AS version FROM longthread_migrations;

-- name: select_size
SELECT pg_database_size(current_database()) AS bytes, CAST(0 AS BIGINT) AS free;

-- name: select_can_measure
SELECT 1 AS can;

-- name: select_table_sizes
-- A table with its indexes, and with the long values that are kept beside it.
SELECT relname AS name, pg_total_relation_size(oid) AS bytes
FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND relname <> 'longthread_migrations'
ORDER BY relname COLLATE "C";
