-- From version 40 to version 41: background work is claimed.

CREATE TABLE background_jobs (
    kind      TEXT NOT NULL,
    subject   TEXT NOT NULL,
    thread_id TEXT REFERENCES threads (id) ON DELETE CASCADE,
    owner     TEXT,
    failures  INTEGER NOT NULL,
    due_at    INTEGER NOT NULL,
    PRIMARY KEY (kind, subject)
) WITHOUT ROWID;
CREATE INDEX background_jobs_of_thread ON background_jobs (thread_id) WHERE thread_id IS NOT NULL;
