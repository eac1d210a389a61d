-- name: wait_briefly
-- Whoever waits for a table as a whole holds up those who come later.
SET LOCAL lock_timeout = '2s';

-- name: select_primary_keys
SELECT c.relname AS name, x.relname AS key
FROM pg_class c
JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
JOIN pg_class x ON x.oid = i.indexrelid
WHERE c.relnamespace = current_schema()::regnamespace;

-- name: select_horizon
-- What is seen from here on is not what was deleted before.
SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS horizon;

-- name: count_older
-- Who may still see what was deleted before; of other roles' it is not told.
SELECT count(*) AS older
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND greatest(age(backend_xid), age(backend_xmin)) > age(CAST(:horizon AS xid8)::xid);

-- name: select_is_held
-- Whether a table was written anew while somebody could still see what was deleted before: it begins with what was
-- seen then.
SELECT age(relfrozenxid) > age(CAST(:horizon AS xid8)::xid) AS held
FROM pg_class
WHERE oid = to_regclass(:name);
