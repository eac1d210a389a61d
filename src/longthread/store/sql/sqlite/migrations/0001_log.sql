-- Threads, and the entries that are their only content.

CREATE TABLE threads (
    id              TEXT PRIMARY KEY,
    user_id         TEXT NOT NULL DEFAULT 'default',
    title           TEXT,
    source          TEXT,
    tip             INTEGER NOT NULL DEFAULT 0,
    entry_count     INTEGER NOT NULL DEFAULT 0,
    tool_categories TEXT NOT NULL DEFAULT '[]',
    tags            TEXT NOT NULL DEFAULT '[]',
    created_at      TEXT NOT NULL,
    updated_at      TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX threads_of_user ON threads (user_id, updated_at DESC);

-- A thread is a tree: `parent_seq` is the entry before this one on its branch, 0 for a first one.
-- Nothing updates or deletes an entry but the deletion of its thread.
CREATE TABLE entries (
    thread_id    TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seq          INTEGER NOT NULL,
    parent_seq   INTEGER NOT NULL,
    id           TEXT NOT NULL,
    role         TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
    text         TEXT NOT NULL,
    tool_calls   TEXT,
    tool_call_id TEXT,
    name         TEXT,
    payload      BLOB,
    tokens       INTEGER,
    latency_ms   INTEGER,
    run_id       TEXT,
    metadata     TEXT,
    created_at   TEXT NOT NULL,
    PRIMARY KEY (thread_id, seq)
);

CREATE UNIQUE INDEX entries_by_id ON entries (thread_id, id);
