-- From version 42 to version 43: where a branch ended that was left.

CREATE TABLE branch_tips (
    thread_id TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seq       BIGINT NOT NULL,
    tip       BIGINT NOT NULL,
    PRIMARY KEY (thread_id, seq)
);
