-- What vectors need of the server.

DO $$
DECLARE
    version TEXT := CAST(current_setting('server_version_num') AS INT) / 10000;
    place TEXT;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') THEN
        RAISE EXCEPTION 'the server lacks pgvector. Install it there (the package postgresql-%-pgvector on Debian and Ubuntu, '
            'pgvector_% on Red Hat, both from postgresql.org, or https://github.com/pgvector/pgvector) and try again',
            version, version;
    END IF;
    BEGIN
        CREATE EXTENSION IF NOT EXISTS vector;
    EXCEPTION WHEN insufficient_privilege THEN
        RAISE EXCEPTION 'the user % may not add pgvector to the database. Let its owner run: CREATE EXTENSION vector',
            current_user;
    END;
    IF to_regtype('vector') IS NULL THEN
        SELECT n.nspname INTO place FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
        WHERE e.extname = 'vector';
        RAISE EXCEPTION 'pgvector is in the schema %, which is not on the search_path. Add it there', place;
    END IF;
END
$$;
