-- Calls of tools that a person decides about before they are made, and what was decided, by whom and when.

-- Since when a run waits for decisions. Nobody executes it, and nobody need: it goes on when the last one is made.
ALTER TABLE runs ADD COLUMN waiting_since TEXT COLLATE "C";

-- `message_id` is the reply that makes the call, `place` where in it, `parameters` the schema that other arguments must fit; `decision` is NULL
-- while the call waits, and `edited` what it was made with instead of `args`.
CREATE TABLE approvals (
    thread_id   TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    run_id      TEXT COLLATE "C" NOT NULL,
    message_id  TEXT COLLATE "C" NOT NULL,
    call_id     TEXT COLLATE "C" NOT NULL,
    place       BIGINT NOT NULL,
    tool        TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" NOT NULL,
    args        TEXT COLLATE "C" NOT NULL,
    parameters  TEXT COLLATE "C" NOT NULL,
    asked_at    TEXT COLLATE "C" NOT NULL,
    decision    TEXT COLLATE "C" CHECK (decision IN ('approve', 'edit', 'reject', 'superseded')),
    edited      TEXT COLLATE "C",
    message     TEXT COLLATE "C",
    decided_by  TEXT COLLATE "C",
    decided_at  TEXT COLLATE "C",
    PRIMARY KEY (thread_id, run_id, message_id, call_id)
);
