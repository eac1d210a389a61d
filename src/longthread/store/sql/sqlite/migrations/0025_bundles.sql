-- Runs that ended long ago, many to a row: whole, and compressed together. Each is in `runs` or in one bundle, and those
-- of a thread do not overlap.

-- What stands beside `body` is what they are found by: `prompts` names those of all of them, `ended_at` is the last one's.
CREATE TABLE run_bundles (
    thread_id  TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    first_id   TEXT NOT NULL,
    last_id    TEXT NOT NULL,
    runs       INTEGER NOT NULL,
    first_step INTEGER NOT NULL,
    stop_step  INTEGER NOT NULL,
    prompts    TEXT,
    ended_at   TEXT NOT NULL,
    body       BLOB NOT NULL,
    PRIMARY KEY (thread_id, first_id)
);
