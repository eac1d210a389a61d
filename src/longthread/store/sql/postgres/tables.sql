-- name: select_columns
-- Read and written as what SQLite holds: text, numbers and bytes.
SELECT c.relname AS table_name,
       a.attname AS name,
       CASE t.typname WHEN 'int2' THEN 'integer' WHEN 'int4' THEN 'integer' WHEN 'int8' THEN 'integer'
                      WHEN 'bool' THEN 'integer' WHEN 'float4' THEN 'real' WHEN 'float8' THEN 'real'
                      WHEN 'numeric' THEN 'real' WHEN 'bytea' THEN 'bytes' WHEN 'vector' THEN 'bytes'
                      ELSE 'text' END AS kind,
       CASE WHEN t.typname IN ('json', 'jsonb') OR t.typcategory = 'A' THEN 'json'
            WHEN t.typname IN ('timestamptz', 'timestamp') THEN 'time'
            WHEN t.typname = 'vector' THEN 'vector'
            ELSE 'plain' END AS form,
       a.attnotnull AS required,
       a.atthasdef OR a.attidentity <> '' AS has_default,
       coalesce(array_position(i.indkey::INT2[], a.attnum), -1) + 1 AS key,
       CASE WHEN t.typname IN ('timestamptz', 'timestamp') THEN
                'to_char(' || quote_ident(a.attname)
                || CASE t.typname WHEN 'timestamptz' THEN ' AT TIME ZONE ''UTC''' ELSE '' END
                || ', ''YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"'')'
            WHEN t.typcategory = 'A' THEN 'CAST(to_json(' || quote_ident(a.attname) || ') AS TEXT)'
            WHEN t.typname = 'bool' THEN 'CAST(' || quote_ident(a.attname) || ' AS INTEGER)'
            WHEN t.typname = 'vector' THEN 'vector_send(' || quote_ident(a.attname) || ')'
            WHEN t.typname IN ('text', 'varchar', 'int2', 'int4', 'int8', 'float4', 'float8', 'numeric', 'bytea')
                THEN quote_ident(a.attname)
            ELSE 'CAST(' || quote_ident(a.attname) || ' AS TEXT)' END AS read,
       CASE WHEN t.typcategory = 'A' THEN
                'CASE WHEN CAST(:' || a.attname || ' AS TEXT) IS NOT NULL THEN ARRAY(SELECT '
                || 'json_array_elements_text(CAST(:' || a.attname || ' AS JSON))) END'
            WHEN t.typname = 'bool' THEN 'CAST(CAST(:' || a.attname || ' AS INTEGER) AS BOOLEAN)'
            ELSE 'CAST(:' || a.attname || ' AS ' || format_type(a.atttypid, a.atttypmod) || ')' END AS write,
       'coalesce(pg_column_size(' || quote_ident(a.attname) || '), 0)' AS size
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND c.relname <> 'longthread_migrations'
ORDER BY c.relname COLLATE "C", a.attnum;

-- name: select_references
SELECT c.relname AS table_name, a.attname AS name, f.relname AS target, b.attname AS target_name
FROM pg_constraint k
JOIN pg_class c ON c.oid = k.conrelid
JOIN pg_class f ON f.oid = k.confrelid
CROSS JOIN LATERAL unnest(k.conkey, k.confkey) WITH ORDINALITY AS p (source, target, place)
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = p.source
JOIN pg_attribute b ON b.attrelid = f.oid AND b.attnum = p.target
WHERE k.contype = 'f' AND c.relnamespace = current_schema()::regnamespace
ORDER BY c.relname COLLATE "C", k.conname, p.place;
