-- Runs, their steps and their event streams.

CREATE TABLE runs (
    thread_id   TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    id          TEXT NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('running', 'finished', 'paused', 'failed')),
    question    TEXT NOT NULL,
    source      TEXT,
    model       TEXT NOT NULL,
    protocol    TEXT NOT NULL,
    max_steps   INTEGER NOT NULL,
    continues   TEXT,
    first_step  INTEGER NOT NULL,
    owner       TEXT,
    lease_until TEXT,
    outcome     TEXT NOT NULL DEFAULT '{}',
    started_at  TEXT NOT NULL,
    ended_at    TEXT,
    PRIMARY KEY (thread_id, id)
) WITHOUT ROWID;

-- One writer a thread: at most one of its runs is live.
CREATE UNIQUE INDEX live_run ON runs (thread_id) WHERE status = 'running';

CREATE TABLE steps (
    thread_id   TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    idx         INTEGER NOT NULL,
    run_id      TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('model', 'tool')),
    status      TEXT NOT NULL CHECK (status IN ('running', 'done', 'failed')),
    thought     TEXT NOT NULL DEFAULT '',
    action      TEXT NOT NULL DEFAULT '',
    args        TEXT NOT NULL DEFAULT '{}',
    observation TEXT,
    call_id     TEXT,
    usage       TEXT NOT NULL DEFAULT '{}',
    manifest    TEXT NOT NULL DEFAULT '[]',
    started_at  TEXT NOT NULL,
    elapsed_ms  INTEGER,
    PRIMARY KEY (thread_id, idx)
);

CREATE TABLE events (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    run_id    TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    type      TEXT NOT NULL,
    data      TEXT NOT NULL,
    at        TEXT NOT NULL,
    PRIMARY KEY (thread_id, run_id, seq)
) WITHOUT ROWID;

-- What a thread's entries up to `seq` taught about its source: derived, may be dropped at any time.
CREATE TABLE folds (
    thread_id TEXT PRIMARY KEY REFERENCES threads (id) ON DELETE CASCADE,
    seq       INTEGER NOT NULL,
    data      TEXT NOT NULL
) WITHOUT ROWID;
