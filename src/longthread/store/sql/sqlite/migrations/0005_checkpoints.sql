-- LangGraph checkpoints. A message in one, wherever it is, is a reference to its entry.

DROP TABLE checkpoint_writes;
DROP TABLE checkpoint_channels;
DROP TABLE checkpoints;

-- `n` counts a namespace's checkpoints in the order in which they came: the last one is the newest, whatever the clocks of
-- those who made their ids. `parent_n` is the one that it goes on from; where that was never there, `parent_id` names it.
-- `body` holds the checkpoint with its channels' values, those that are stored apart excepted, and what its tasks have
-- written, as far as that has no rows of its own: `writes` counts it.
CREATE TABLE checkpoints (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    ns        TEXT NOT NULL,
    n         INTEGER NOT NULL,
    parent_n  INTEGER,
    writes    INTEGER NOT NULL DEFAULT 0,
    id        TEXT NOT NULL,
    parent_id TEXT,
    metadata  TEXT NOT NULL,
    body      BLOB NOT NULL,
    PRIMARY KEY (thread_id, ns, n)
) WITHOUT ROWID;

CREATE UNIQUE INDEX checkpoints_by_id ON checkpoints (thread_id, ns, id);

-- Values that are too large to be in each checkpoint, under the number of the one that stored them.
CREATE TABLE checkpoint_blobs (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    ns        TEXT NOT NULL,
    n         INTEGER NOT NULL,
    channel   TEXT NOT NULL,
    body      BLOB NOT NULL,
    PRIMARY KEY (thread_id, ns, n, channel)
);

-- What the tasks of a checkpoint have written that is not in its body: a row for each task.
CREATE TABLE checkpoint_writes (
    thread_id     TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    ns            TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    task_id       TEXT NOT NULL,
    task_path     TEXT NOT NULL DEFAULT '',
    writes        INTEGER NOT NULL,
    body          BLOB NOT NULL,
    PRIMARY KEY (thread_id, ns, checkpoint_id, task_id)
) WITHOUT ROWID;
