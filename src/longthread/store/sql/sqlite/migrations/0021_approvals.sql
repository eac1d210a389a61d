-- Calls of tools that a person decides about before they are made, and what was decided, by whom and when.

-- Since when a run waits for decisions. Nobody executes it, and nobody need: it goes on when the last one is made.
ALTER TABLE runs ADD COLUMN waiting_since TEXT;

-- `message_id` is the reply that makes the call, `place` where in it, `parameters` the schema that other arguments must fit; `decision` is NULL
-- while the call waits, and `edited` what it was made with instead of `args`.
CREATE TABLE approvals (
    thread_id   TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    run_id      TEXT NOT NULL,
    message_id  TEXT NOT NULL,
    call_id     TEXT NOT NULL,
    place       INTEGER NOT NULL,
    tool        TEXT NOT NULL,
    description TEXT NOT NULL,
    args        TEXT NOT NULL,
    parameters  TEXT NOT NULL,
    asked_at    TEXT NOT NULL,
    decision    TEXT CHECK (decision IN ('approve', 'edit', 'reject', 'superseded')),
    edited      TEXT,
    message     TEXT,
    decided_by  TEXT,
    decided_at  TEXT,
    PRIMARY KEY (thread_id, run_id, message_id, call_id)
) WITHOUT ROWID;
