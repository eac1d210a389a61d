-- name: select_columns
SELECT t.name AS table_name,
       c.name AS name,
       CASE WHEN upper(c.type) LIKE '%INT%' THEN 'integer'
            WHEN upper(c.type) LIKE '%CHAR%' OR upper(c.type) LIKE '%CLOB%' OR upper(c.type) LIKE '%TEXT%' THEN 'text'
            WHEN upper(c.type) LIKE '%BLOB%' OR c.type = '' THEN 'bytes'
            WHEN upper(c.type) LIKE '%REAL%' OR upper(c.type) LIKE '%FLOA%' OR upper(c.type) LIKE '%DOUB%' THEN 'real'
            ELSE 'text' END AS kind,
       CASE WHEN t.sql LIKE '%json\_valid(' || c.name || ')%' ESCAPE '\' THEN 'json'
            WHEN c.dflt_value LIKE '%strftime(%' THEN 'time'
            ELSE 'plain' END AS form,
       c."notnull" AS required,
       c.dflt_value IS NOT NULL AS has_default,
       c.pk AS key,
       '"' || c.name || '"' AS read,
       ':' || c.name AS write,
       'coalesce(length(CAST("' || c.name || '" AS BLOB)), 0)' AS size
FROM sqlite_master t JOIN pragma_table_xinfo(t.name) c
WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\' AND t.sql NOT LIKE 'CREATE VIRTUAL %' AND c.hidden = 0
  AND t.name NOT LIKE 'longthread\_backup%' ESCAPE '\'
  -- A virtual table keeps what it holds in tables of its own, which follow from the others.
  AND NOT EXISTS (
      SELECT 1 FROM sqlite_master v
      WHERE v.sql LIKE 'CREATE VIRTUAL %' AND substr(t.name, 1, length(v.name) + 1) = v.name || '_'
  )
ORDER BY t.name, c.cid;

-- name: select_references
SELECT t.name AS table_name, f."from" AS name, f."table" AS target, coalesce(f."to", '') AS target_name
FROM sqlite_master t JOIN pragma_foreign_key_list(t.name) f
WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL %'
ORDER BY t.name, f.id, f.seq;
