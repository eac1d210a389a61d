-- The index of many threads of a user, put together, so that a question to all of them reads few values. It follows from
-- the threads' own, and can be dropped and made again.

-- `members` says which threads a volume has, and at which of its places.
CREATE TABLE recall_volumes (
    user_id TEXT NOT NULL,
    id      TEXT NOT NULL,
    form    INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    words   INTEGER NOT NULL,
    members TEXT NOT NULL,
    PRIMARY KEY (user_id, id)
);

-- Where the terms of one bucket stand in a volume.
CREATE TABLE recall_volume_postings (
    user_id TEXT NOT NULL,
    bucket  INTEGER NOT NULL,
    volume  TEXT NOT NULL,
    data    BLOB NOT NULL,
    PRIMARY KEY (user_id, bucket, volume)
);

-- Which volume a thread is in.
CREATE TABLE recall_bound (
    thread_id TEXT NOT NULL PRIMARY KEY REFERENCES threads (id) ON DELETE CASCADE,
    user_id   TEXT NOT NULL,
    volume    TEXT NOT NULL
);
CREATE INDEX recall_bound_in ON recall_bound (user_id, volume);

-- The threads that are in no volume, or have changed since: these are read by their own index.
CREATE TABLE recall_loose (
    thread_id TEXT NOT NULL PRIMARY KEY REFERENCES threads (id) ON DELETE CASCADE,
    user_id   TEXT NOT NULL
);
CREATE INDEX recall_loose_of ON recall_loose (user_id);
INSERT INTO recall_loose (thread_id, user_id) SELECT id, user_id FROM threads WHERE entry_count > 0;

-- A volume goes with its terms, and leaves its threads loose.
CREATE TRIGGER volume_gone BEFORE DELETE ON recall_volumes
BEGIN
    INSERT OR IGNORE INTO recall_loose (thread_id, user_id)
    SELECT thread_id, user_id FROM recall_bound WHERE user_id = OLD.user_id AND volume = OLD.id;
    DELETE FROM recall_bound WHERE user_id = OLD.user_id AND volume = OLD.id;
    DELETE FROM recall_volume_postings WHERE user_id = OLD.user_id AND volume = OLD.id;
END;

CREATE TRIGGER thread_loose_at_first AFTER INSERT ON threads WHEN NEW.entry_count > 0
BEGIN
    INSERT OR IGNORE INTO recall_loose (thread_id, user_id) VALUES (NEW.id, NEW.user_id);
END;

CREATE TRIGGER thread_loose AFTER UPDATE OF entry_count ON threads WHEN NEW.entry_count <> OLD.entry_count
BEGIN
    INSERT OR IGNORE INTO recall_loose (thread_id, user_id) VALUES (NEW.id, NEW.user_id);
END;

-- What was deleted of a thread, or all of it, must be in no volume; and a volume knows whose threads are with which agent.
CREATE TRIGGER thread_cut AFTER UPDATE OF first_seq, user_id, agent_id ON threads
WHEN NEW.first_seq <> OLD.first_seq OR NEW.user_id <> OLD.user_id OR NEW.agent_id IS NOT OLD.agent_id
BEGIN
    DELETE FROM recall_volumes
    WHERE (user_id, id) = (SELECT user_id, volume FROM recall_bound WHERE thread_id = OLD.id);
    UPDATE recall_loose SET user_id = NEW.user_id WHERE thread_id = NEW.id;
END;

CREATE TRIGGER thread_unbound BEFORE DELETE ON threads
BEGIN
    DELETE FROM recall_volumes
    WHERE (user_id, id) = (SELECT user_id, volume FROM recall_bound WHERE thread_id = OLD.id);
END;
