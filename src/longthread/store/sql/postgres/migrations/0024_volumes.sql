-- The index of many threads of a user, put together, so that a question to all of them reads few values. It follows from
-- the threads' own, and can be dropped and made again.

-- `members` says which threads a volume has, and at which of its places.
CREATE TABLE recall_volumes (
    user_id TEXT COLLATE "C" NOT NULL,
    id      TEXT COLLATE "C" NOT NULL,
    form    BIGINT NOT NULL,
    entries BIGINT NOT NULL,
    words   BIGINT NOT NULL,
    members TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, id)
);

-- Where the terms of one bucket stand in a volume.
CREATE TABLE recall_volume_postings (
    user_id TEXT COLLATE "C" NOT NULL,
    bucket  BIGINT NOT NULL,
    volume  TEXT COLLATE "C" NOT NULL,
    data    BYTEA NOT NULL,
    PRIMARY KEY (user_id, bucket, volume)
);

-- What is packed does not get smaller.
ALTER TABLE recall_volume_postings ALTER COLUMN data SET STORAGE EXTERNAL;

-- Which volume a thread is in.
CREATE TABLE recall_bound (
    thread_id TEXT COLLATE "C" PRIMARY KEY REFERENCES threads (id) ON DELETE CASCADE,
    user_id   TEXT COLLATE "C" NOT NULL,
    volume    TEXT COLLATE "C" NOT NULL
);
CREATE INDEX recall_bound_in ON recall_bound (user_id, volume);

-- The threads that are in no volume, or have changed since: these are read by their own index.
CREATE TABLE recall_loose (
    thread_id TEXT COLLATE "C" PRIMARY KEY REFERENCES threads (id) ON DELETE CASCADE,
    user_id   TEXT COLLATE "C" NOT NULL
);
CREATE INDEX recall_loose_of ON recall_loose (user_id);
INSERT INTO recall_loose (thread_id, user_id) SELECT id, user_id FROM threads WHERE entry_count > 0;

-- A volume goes with its terms, and leaves its threads loose.
CREATE FUNCTION loosen_volume() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO recall_loose (thread_id, user_id)
    SELECT thread_id, user_id FROM recall_bound WHERE user_id = OLD.user_id AND volume = OLD.id
    ON CONFLICT DO NOTHING;
    DELETE FROM recall_bound WHERE user_id = OLD.user_id AND volume = OLD.id;
    DELETE FROM recall_volume_postings WHERE user_id = OLD.user_id AND volume = OLD.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER volume_gone AFTER DELETE ON recall_volumes FOR EACH ROW EXECUTE FUNCTION loosen_volume();

CREATE FUNCTION loosen_thread() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO recall_loose (thread_id, user_id) VALUES (NEW.id, NEW.user_id) ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
CREATE TRIGGER thread_loose_at_first AFTER INSERT ON threads
    FOR EACH ROW WHEN (NEW.entry_count > 0) EXECUTE FUNCTION loosen_thread();
CREATE TRIGGER thread_loose AFTER UPDATE OF entry_count ON threads
    FOR EACH ROW WHEN (NEW.entry_count <> OLD.entry_count) EXECUTE FUNCTION loosen_thread();

-- What was deleted of a thread, or all of it, must be in no volume; and a volume knows whose threads are with which agent.
CREATE FUNCTION unbind_thread() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM recall_volumes
    WHERE (user_id, id) = (SELECT user_id, volume FROM recall_bound WHERE thread_id = OLD.id);
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    UPDATE recall_loose SET user_id = NEW.user_id WHERE thread_id = NEW.id AND user_id <> NEW.user_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER thread_cut AFTER UPDATE OF first_seq, user_id, agent_id ON threads
    FOR EACH ROW WHEN (
        NEW.first_seq <> OLD.first_seq OR NEW.user_id <> OLD.user_id OR NEW.agent_id IS DISTINCT FROM OLD.agent_id
    ) EXECUTE FUNCTION unbind_thread();
CREATE TRIGGER thread_unbound BEFORE DELETE ON threads FOR EACH ROW EXECUTE FUNCTION unbind_thread();

-- Nothing is looked for by these alone: the planner needs no samples of them.
ALTER TABLE recall_volumes ALTER COLUMN members SET STATISTICS 0;
ALTER TABLE recall_volume_postings ALTER COLUMN data SET STATISTICS 0;
ALTER TABLE memories ALTER COLUMN embedding SET STATISTICS 0;
