-- From version 40 to version 41: background work is claimed.

CREATE TABLE background_jobs (
    kind      TEXT COLLATE "C" NOT NULL,
    subject   TEXT COLLATE "C" NOT NULL,
    thread_id TEXT COLLATE "C" REFERENCES threads (id) ON DELETE CASCADE,
    owner     TEXT COLLATE "C",
    failures  BIGINT NOT NULL,
    due_at    BIGINT NOT NULL,
    PRIMARY KEY (kind, subject)
);
CREATE INDEX background_jobs_of_thread ON background_jobs (thread_id) WHERE thread_id IS NOT NULL;
