-- From version 39 to version 40: a question is not asked twice under one key.

CREATE TABLE idempotency_keys (
    user_id    TEXT NOT NULL,
    key        TEXT NOT NULL,
    request    TEXT NOT NULL,
    thread_id  TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    run_id     TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (user_id, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_keys_of_thread ON idempotency_keys (thread_id);
