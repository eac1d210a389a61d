-- Threads, and the entries that are their only content.
-- COLLATE "C" orders text by its bytes, as SQLite does, whatever the database's own collation is.

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

CREATE TABLE threads (
    id              TEXT COLLATE "C" PRIMARY KEY,
    user_id         TEXT COLLATE "C" NOT NULL DEFAULT 'default',
    title           TEXT COLLATE "C",
    source          TEXT COLLATE "C",
    tip             BIGINT NOT NULL DEFAULT 0,
    entry_count     BIGINT NOT NULL DEFAULT 0,
    tool_categories TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    tags            TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    created_at      TEXT COLLATE "C" NOT NULL,
    updated_at      TEXT COLLATE "C" NOT NULL
);

CREATE INDEX threads_of_user ON threads (user_id, updated_at DESC);

-- A thread is a tree: `parent_seq` is the entry before this one on its branch, 0 for a first one.
-- Nothing updates or deletes an entry but the deletion of its thread.
CREATE TABLE entries (
    thread_id    TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seq          BIGINT NOT NULL,
    parent_seq   BIGINT NOT NULL,
    id           TEXT COLLATE "C" NOT NULL,
    role         TEXT COLLATE "C" NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
    text         TEXT COLLATE "C" NOT NULL,
    tool_calls   TEXT COLLATE "C",
    tool_call_id TEXT COLLATE "C",
    name         TEXT COLLATE "C",
    payload      BYTEA,
    tokens       BIGINT,
    latency_ms   BIGINT,
    run_id       TEXT COLLATE "C",
    metadata     TEXT COLLATE "C",
    created_at   TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (thread_id, seq)
);

CREATE UNIQUE INDEX entries_by_id ON entries (thread_id, id);
