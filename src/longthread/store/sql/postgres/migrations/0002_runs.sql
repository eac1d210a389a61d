-- Runs, their steps and their event streams.

CREATE TABLE runs (
    thread_id   TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    id          TEXT COLLATE "C" NOT NULL,
    status      TEXT COLLATE "C" NOT NULL CHECK (status IN ('running', 'finished', 'paused', 'failed')),
    question    TEXT COLLATE "C" NOT NULL,
    source      TEXT COLLATE "C",
    model       TEXT COLLATE "C" NOT NULL,
    protocol    TEXT COLLATE "C" NOT NULL,
    max_steps   BIGINT NOT NULL,
    continues   TEXT COLLATE "C",
    first_step  BIGINT NOT NULL,
    owner       TEXT COLLATE "C",
    lease_until TEXT COLLATE "C",
    outcome     TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    started_at  TEXT COLLATE "C" NOT NULL,
    ended_at    TEXT COLLATE "C",
    PRIMARY KEY (thread_id, id)
);

-- One writer a thread: at most one of its runs is live.
CREATE UNIQUE INDEX live_run ON runs (thread_id) WHERE status = 'running';

CREATE TABLE steps (
    thread_id   TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    idx         BIGINT NOT NULL,
    run_id      TEXT COLLATE "C" NOT NULL,
    kind        TEXT COLLATE "C" NOT NULL CHECK (kind IN ('model', 'tool')),
    status      TEXT COLLATE "C" NOT NULL CHECK (status IN ('running', 'done', 'failed')),
    thought     TEXT COLLATE "C" NOT NULL DEFAULT '',
    action      TEXT COLLATE "C" NOT NULL DEFAULT '',
    args        TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    observation TEXT COLLATE "C",
    call_id     TEXT COLLATE "C",
    usage       TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    manifest    TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    started_at  TEXT COLLATE "C" NOT NULL,
    elapsed_ms  BIGINT,
    PRIMARY KEY (thread_id, idx)
);

CREATE TABLE events (
    thread_id TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    run_id    TEXT COLLATE "C" NOT NULL,
    seq       BIGINT NOT NULL,
    type      TEXT COLLATE "C" NOT NULL,
    data      TEXT COLLATE "C" NOT NULL,
    at        TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (thread_id, run_id, seq)
);

-- What a thread's entries up to `seq` taught about its source: derived, may be dropped at any time.
CREATE TABLE folds (
    thread_id TEXT COLLATE "C" PRIMARY KEY REFERENCES threads (id) ON DELETE CASCADE,
    seq       BIGINT NOT NULL,
    data      TEXT COLLATE "C" NOT NULL
);
