-- A memory is one user's with one agent, and goes with the thread that it comes from.
--
-- `said` tells two that say the same. `terms` and `words` are what a search compares, `form` says of which content and in
-- which form; a search makes up for what is missing. `numbers` is the vector of the model `model`, of any number of
-- dimensions; one of 1536 is in `embedding` too.
ALTER TABLE memories ADD COLUMN user_id TEXT COLLATE "C";
ALTER TABLE memories ADD COLUMN said TEXT COLLATE "C";
ALTER TABLE memories ADD COLUMN form TEXT COLLATE "C";
ALTER TABLE memories ADD COLUMN words BIGINT;
ALTER TABLE memories ADD COLUMN terms BYTEA;
ALTER TABLE memories ADD COLUMN model TEXT COLLATE "C";
ALTER TABLE memories ADD COLUMN numbers VECTOR;

UPDATE memories
SET user_id = coalesce((SELECT t.user_id FROM threads t WHERE t.id = memories.session_id), 'default');

ALTER TABLE memories DROP CONSTRAINT memories_session_id_fkey;
ALTER TABLE memories ADD CONSTRAINT memories_session_id_fkey
    FOREIGN KEY (session_id) REFERENCES threads (id) ON DELETE CASCADE;

CREATE UNIQUE INDEX memories_of_user ON memories (user_id, agent_id, said);
CREATE INDEX memories_expire ON memories (expires_at) WHERE expires_at IS NOT NULL;

-- Who does not say whose it is means the user of the thread that it comes from.
CREATE FUNCTION memory_user() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    NEW.user_id = coalesce((SELECT t.user_id FROM threads t WHERE t.id = NEW.session_id), 'default');
    RETURN NEW;
END
$$;

CREATE TRIGGER memory_user BEFORE INSERT ON memories FOR EACH ROW WHEN (NEW.user_id IS NULL)
    EXECUTE FUNCTION memory_user();

-- The entries that a memory comes from, in each thread where it was said, with the words that it was said in.
CREATE TABLE memory_sources (
    memory_id  UUID NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    session_id TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seqs       TEXT COLLATE "C" NOT NULL,
    content    TEXT COLLATE "C" NOT NULL,
    said_at    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (memory_id, session_id)
);

CREATE INDEX memory_sources_of_thread ON memory_sources (session_id);

-- The memories that a run's model was given, in the line that it saw, or has looked up.
CREATE TABLE memory_uses (
    session_id TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    run_id     TEXT COLLATE "C" NOT NULL,
    memory_id  UUID NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    how        TEXT COLLATE "C" NOT NULL CHECK (how IN ('given', 'found')),
    place      BIGINT NOT NULL,
    shown      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (session_id, run_id, memory_id),
    FOREIGN KEY (session_id, run_id) REFERENCES runs (thread_id, id) ON DELETE CASCADE
);

CREATE INDEX memory_uses_of_memory ON memory_uses (memory_id);

-- PostgreSQL keeps samples of a column's values for its planner, also when the rows are gone. Of what people say none are
-- kept: nothing is looked for by such a column alone.
DO $$
DECLARE
    place RECORD;
BEGIN
    FOR place IN
        SELECT c.oid::regclass AS name, a.attname AS part
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        JOIN pg_type t ON t.oid = a.atttypid
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
          AND (t.typname IN ('text', 'varchar', 'json', 'jsonb', 'bytea', 'vector') OR t.typcategory = 'A')
          AND c.relname <> 'longthread_migrations'
          AND (a.attname IN ('topic', 'topics') OR NOT EXISTS (
              SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND a.attnum = ANY (i.indkey::INT2[])
          ))
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', place.name, place.part);
    END LOOP;
END
$$;
