-- Runs that ended long ago, many to a row: whole, and compressed together. Each is in `runs` or in one bundle, and those
-- of a thread do not overlap.

-- What stands beside `body` is what they are found by: `prompts` names those of all of them, `ended_at` is the last one's.
CREATE TABLE run_bundles (
    thread_id  TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    first_id   TEXT COLLATE "C" NOT NULL,
    last_id    TEXT COLLATE "C" NOT NULL,
    runs       BIGINT NOT NULL,
    first_step BIGINT NOT NULL,
    stop_step  BIGINT NOT NULL,
    prompts    TEXT COLLATE "C",
    ended_at   TEXT COLLATE "C" NOT NULL,
    body       BYTEA NOT NULL,
    PRIMARY KEY (thread_id, first_id)
);

ALTER TABLE run_bundles ALTER COLUMN body SET STORAGE EXTERNAL;

-- Nothing is looked for by these alone: the planner needs no samples of them.
ALTER TABLE run_bundles ALTER COLUMN prompts SET STATISTICS 0;
ALTER TABLE run_bundles ALTER COLUMN body SET STATISTICS 0;
