-- From version 39 to version 40: a question is not asked twice under one key.

CREATE TABLE idempotency_keys (
    user_id    TEXT COLLATE "C" NOT NULL,
    key        TEXT COLLATE "C" NOT NULL,
    request    TEXT COLLATE "C" NOT NULL,
    thread_id  TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    run_id     TEXT COLLATE "C" NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, key)
);
CREATE INDEX idempotency_keys_of_thread ON idempotency_keys (thread_id);
