-- From version 45 to version 46: links to conversations.

CREATE TABLE share_links (
    thread_id  TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    id         TEXT COLLATE "C" NOT NULL,
    token_hash TEXT COLLATE "C" NOT NULL,
    user_id    TEXT COLLATE "C" NOT NULL,
    tip        BIGINT NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    expires_at TEXT COLLATE "C",
    PRIMARY KEY (thread_id, id)
);
CREATE UNIQUE INDEX share_links_by_token ON share_links (token_hash);
