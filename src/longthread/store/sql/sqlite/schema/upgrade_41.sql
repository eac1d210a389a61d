-- From version 41 to version 42: questions wait in a queue.

CREATE TABLE queued_questions (
    thread_id     TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    id            TEXT NOT NULL,
    place         INTEGER NOT NULL,
    question      TEXT NOT NULL,
    source        TEXT,
    fingerprint   TEXT,
    model         TEXT NOT NULL,
    protocol      TEXT NOT NULL,
    max_steps     INTEGER NOT NULL,
    agent_id      TEXT,
    agent_version INTEGER,
    agent_parts   TEXT,
    rolls_back    TEXT,
    queued_at     TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
    PRIMARY KEY (thread_id, id)
) WITHOUT ROWID;
