-- From version 43 to version 44: threads are archived, and deleted after a while.

ALTER TABLE threads ADD COLUMN archived_at TEXT;

CREATE TABLE pending_deletions (
    thread_id TEXT PRIMARY KEY NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    root      TEXT NOT NULL,
    user_id   TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX pending_deletions_below ON pending_deletions (root);
CREATE INDEX pending_deletions_of_user ON pending_deletions (user_id);
