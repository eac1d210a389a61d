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
