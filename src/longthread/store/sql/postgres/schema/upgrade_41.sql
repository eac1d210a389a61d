-- From version 41 to version 42: questions wait in a queue.

CREATE TABLE queued_questions (
    thread_id     TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    id            TEXT COLLATE "C" NOT NULL,
    place         BIGINT NOT NULL,
    question      TEXT COLLATE "C" NOT NULL,
    source        TEXT COLLATE "C",
    fingerprint   TEXT COLLATE "C",
    model         TEXT COLLATE "C" NOT NULL,
    protocol      TEXT COLLATE "C" NOT NULL,
    max_steps     BIGINT NOT NULL,
    agent_id      TEXT COLLATE "C",
    agent_version BIGINT,
    agent_parts   TEXT COLLATE "C",
    rolls_back    TEXT COLLATE "C",
    queued_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (thread_id, id)
);
