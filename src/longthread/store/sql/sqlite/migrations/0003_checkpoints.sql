-- LangGraph checkpoints. A channel that is a list of messages is kept as ranges over the thread's entries.

CREATE TABLE checkpoints (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    ns        TEXT NOT NULL,
    id        TEXT NOT NULL,
    parent_id TEXT,
    type      TEXT NOT NULL,
    body      BLOB NOT NULL,
    metadata  TEXT NOT NULL,
    PRIMARY KEY (thread_id, ns, id)
) WITHOUT ROWID;

CREATE TABLE checkpoint_channels (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    ns        TEXT NOT NULL,
    channel   TEXT NOT NULL,
    version   TEXT NOT NULL,
    type      TEXT NOT NULL,
    body      BLOB,
    PRIMARY KEY (thread_id, ns, channel, version)
) WITHOUT ROWID;

CREATE TABLE checkpoint_writes (
    thread_id     TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    ns            TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    task_id       TEXT NOT NULL,
    idx           INTEGER NOT NULL,
    task_path     TEXT NOT NULL DEFAULT '',
    channel       TEXT NOT NULL,
    type          TEXT NOT NULL,
    body          BLOB,
    PRIMARY KEY (thread_id, ns, checkpoint_id, task_id, idx)
) WITHOUT ROWID;
