-- name: select_vacuum_mode
-- 2: a file gives back what is free step by step; 0: only when it is written anew.
SELECT auto_vacuum AS mode FROM pragma_auto_vacuum;

-- name: vacuum_page
PRAGMA incremental_vacuum(1);

-- name: set_vacuum_mode
PRAGMA auto_vacuum = INCREMENTAL;

-- name: vacuum_all
VACUUM;

-- name: wait_briefly
PRAGMA busy_timeout = 2000;

-- name: wait_a_moment
PRAGMA busy_timeout = 200;

-- name: wait_as_before
PRAGMA busy_timeout = 30000;

-- name: shrink_file
PRAGMA wal_checkpoint(TRUNCATE);

-- name: select_free_pages
SELECT freelist_count AS free FROM pragma_freelist_count;
