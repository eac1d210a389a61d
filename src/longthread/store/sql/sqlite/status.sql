-- name: select_server
SELECT 'SQLite ' || sqlite_version() AS server;

-- name: select_schema
SELECT user_version AS version FROM pragma_user_version;

-- name: select_size
SELECT c.page_count * s.page_size AS bytes, f.freelist_count * s.page_size AS free
FROM pragma_page_count c, pragma_page_size s, pragma_freelist_count f;

-- name: select_can_measure
SELECT count(*) AS can FROM pragma_module_list WHERE name = 'dbstat';

-- name: select_table_sizes
-- A table with its indexes.
SELECT m.tbl_name AS name, sum(d.pgsize) AS bytes
FROM sqlite_master m CROSS JOIN dbstat d
WHERE d.name = m.name AND d.aggregate = TRUE
GROUP BY m.tbl_name
ORDER BY m.tbl_name;
