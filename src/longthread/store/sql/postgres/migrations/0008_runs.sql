-- What a run did is stored once. A question, a reply and a result are entries, and runs and steps refer to them; an event
-- that says what a step or a run already holds is a mark on that. What a run has come to when it ends, its steps and events
-- with it, is one row.

-- The entry that is the step's reply or result: its text is the thought, or the observation.
ALTER TABLE steps ADD COLUMN entry_seq BIGINT;

-- The system prompt and the tools that went with the view of a model call.
ALTER TABLE steps ADD COLUMN prompt TEXT COLLATE "C";

-- The events of the step: `[[number, type, microseconds after the start], …]`, for a piece of text with its characters.
ALTER TABLE steps ADD COLUMN told TEXT COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE steps ADD COLUMN last_event BIGINT NOT NULL DEFAULT 0;

-- The entry whose text is the question, and the one that the run ended with: its text is the outcome's answer or summary.
ALTER TABLE runs ADD COLUMN question_seq BIGINT;
ALTER TABLE runs ADD COLUMN entry_seq BIGINT;
ALTER TABLE runs ADD COLUMN told TEXT COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE runs ADD COLUMN last_event BIGINT NOT NULL DEFAULT 0;

-- The index behind the run's last step; NULL while it may make more.
ALTER TABLE runs ADD COLUMN stop_step BIGINT;

-- The prompts that its steps name, and the run's outcome, steps and events, compressed; NULL while it may make more.
ALTER TABLE runs ADD COLUMN prompts TEXT COLLATE "C";
ALTER TABLE runs ADD COLUMN body BYTEA;

-- Each prompt once, compressed, under a hash of what it says.
CREATE TABLE prompts (
    thread_id TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    id        TEXT COLLATE "C" NOT NULL,
    body      BYTEA NOT NULL,
    PRIMARY KEY (thread_id, id)
);

-- The last query label is told apart from the facts: it changes with every query, and they seldom do.
ALTER TABLE folds ADD COLUMN queries BIGINT NOT NULL DEFAULT 0;

UPDATE runs SET stop_step = (SELECT coalesce(max(s.idx) + 1, runs.first_step) FROM steps s
                             WHERE s.thread_id = runs.thread_id AND s.run_id = runs.id)
WHERE status <> 'running';

-- Messages are compressed where that is worth it, and stay with their rows: rows of a kilobyte or two fill pages badly.
ALTER TABLE entries ALTER COLUMN text SET STORAGE MAIN;
ALTER TABLE entries SET (toast_tuple_target = 512);
