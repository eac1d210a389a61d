-- name: select_log
-- What this role may do about PostgreSQL's own log, and what keeps its files.
SELECT
    current_user AS role,
    coalesce(
        (SELECT pg_has_role(oid, 'USAGE') FROM pg_roles WHERE rolname = 'pg_checkpoint'),
        (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
    ) AS may_checkpoint,
    has_function_privilege('pg_catalog.pg_switch_wal()', 'EXECUTE') AS may_switch,
    has_function_privilege('pg_catalog.pg_ls_waldir()', 'EXECUTE') AS may_list,
    current_setting('archive_mode') <> 'off' AS is_archived,
    current_setting('wal_recycle')::boolean AS is_recycled,
    current_setting('wal_keep_size') <> '0' AS is_kept,
    EXISTS (SELECT FROM pg_replication_slots) AS has_slots;

-- name: checkpoint
CHECKPOINT;

-- name: write_to_log
-- A file in which nothing was written is not left for the next one.
SELECT pg_logical_emit_message(FALSE, 'longthread', '');

-- name: switch_log
-- The rest of the file that is left is overwritten.
SELECT pg_switch_wal();

-- name: select_log_file
-- Names begin with the number of the timeline, which does not tell their order.
SELECT substr(pg_walfile_name(pg_current_wal_insert_lsn()), 9) AS name;

-- name: select_log_files
-- How many files there are from before one, and how many are kept for what comes behind it.
SELECT
    count(*) FILTER (WHERE substr(name, 9) < :current) AS before,
    count(*) FILTER (WHERE substr(name, 9) > :current) AS behind
FROM pg_ls_waldir()
WHERE name ~ '^[0-9A-F]{24}$';
