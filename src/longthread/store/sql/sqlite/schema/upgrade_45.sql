-- From version 45 to version 46: links to conversations.

CREATE TABLE share_links (
    thread_id  TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    id         TEXT NOT NULL,
    token_hash TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    tip        INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    PRIMARY KEY (thread_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX share_links_by_token ON share_links (token_hash);
