-- From version 43 to version 44: threads are archived, and deleted after a while.

ALTER TABLE threads ADD COLUMN archived_at TEXT COLLATE "C";

CREATE TABLE pending_deletions (
    thread_id TEXT COLLATE "C" PRIMARY KEY NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    root      TEXT COLLATE "C" NOT NULL,
    user_id   TEXT COLLATE "C" NOT NULL
);
CREATE INDEX pending_deletions_below ON pending_deletions (root);
CREATE INDEX pending_deletions_of_user ON pending_deletions (user_id);
