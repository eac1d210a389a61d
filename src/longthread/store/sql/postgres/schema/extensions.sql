-- What PostgreSQL's tables need of the server.

-- Folds the case of every language's letters, whatever the database's own collation is. Which of these there is depends
-- on the server's version and on how it was built; the last two do not know the few letters whose lower case is two
-- letters, or depends on what follows.
DO $$
DECLARE
    given TEXT;
BEGIN
    SELECT c.collname INTO given
    FROM unnest(ARRAY['pg_unicode_fast', 'und-x-icu', 'pg_c_utf8', 'C.utf8']) WITH ORDINALITY AS known (name, place)
    JOIN pg_collation c ON c.collname = known.name AND c.collnamespace = 'pg_catalog'::regnamespace
        AND c.collencoding IN (-1, pg_char_to_encoding('UTF8'))
    ORDER BY known.place LIMIT 1;
    IF given IS NULL THEN
        RAISE EXCEPTION 'the server folds the case of English letters only: use PostgreSQL 17 or newer, or one with ICU';
    END IF;
    EXECUTE format('CREATE COLLATION letters FROM pg_catalog.%I', given);
END
$$;

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
