-- From version 36 to version 37: what the gateway keeps takes less.

DROP INDEX threads_by_number;
CREATE UNIQUE INDEX threads_by_number ON threads (number);

DROP INDEX entries_by_id;
CREATE INDEX entries_by_id ON entries (
    CASE WHEN length(thread_id) IN (16, 36) AND substr(thread_id, -8) GLOB '[0-9a-z][0-9a-z][0-9a-z][0-9a-z][0-9a-z][0-9a-z][0-9a-z][0-9a-z]'
         THEN substr(thread_id, -6) ELSE thread_id END
    || CASE WHEN length(id) = 36 AND substr(id, -8) GLOB '[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'
            THEN substr(id, 11, 3) || substr(id, -8) ELSE id END
);

ALTER TABLE gateway_frames RENAME TO old_gateway_frames;

CREATE TABLE gateway_frames (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    id        TEXT NOT NULL,
    dialect   TEXT,
    upstream  TEXT,
    family    TEXT,
    model     TEXT,
    body      BLOB NOT NULL,
    PRIMARY KEY (thread_id, id)
);

INSERT INTO gateway_frames (thread_id, id, body) SELECT thread_id, id, body FROM old_gateway_frames;
DROP TABLE old_gateway_frames;

ALTER TABLE gateway_calls RENAME TO old_gateway_calls;

CREATE TABLE gateway_calls (
    thread_id   TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    n           INTEGER NOT NULL,
    response_id TEXT,
    dialect     TEXT,
    upstream    TEXT,
    family      TEXT,
    model       TEXT,
    frame       TEXT NOT NULL,
    tools       INTEGER NOT NULL,
    status      INTEGER NOT NULL,
    asked_seq   INTEGER NOT NULL,
    reply_seq   INTEGER,
    reply_end   INTEGER,
    asked       INTEGER NOT NULL,
    ends        INTEGER NOT NULL,
    previous    INTEGER NOT NULL DEFAULT 0,
    base        INTEGER NOT NULL DEFAULT 0,
    hidden      BLOB,
    hidden_hash BLOB,
    restored    INTEGER NOT NULL DEFAULT 0,
    dropped     INTEGER NOT NULL DEFAULT 0,
    refused     INTEGER NOT NULL DEFAULT FALSE CHECK (refused IN (FALSE, TRUE)),
    usage       TEXT,
    head        BLOB,
    started_at  INTEGER NOT NULL,
    elapsed_ms  INTEGER NOT NULL,
    PRIMARY KEY (thread_id, n)
) WITHOUT ROWID;

INSERT INTO gateway_calls
SELECT thread_id, n, response_id, dialect, upstream, family, model, frame, tools, status, asked_seq, reply_seq, reply_end,
       asked, ends, previous, base, hidden, hidden_hash, restored, dropped, refused, usage, head,
       CAST(strftime('%s', started_at) AS INTEGER) * 1000000 + CAST(substr(started_at, 21, 6) AS INTEGER), elapsed_ms
FROM old_gateway_calls;
DROP TABLE old_gateway_calls;

ALTER TABLE gateway_nodes RENAME TO old_gateway_nodes;

CREATE TABLE gateway_nodes (
    thread INTEGER NOT NULL REFERENCES threads (number) ON DELETE CASCADE,
    seq    INTEGER NOT NULL,
    place  INTEGER NOT NULL,
    node   INTEGER NOT NULL,
    call   INTEGER NOT NULL,
    PRIMARY KEY (thread, seq, place)
) WITHOUT ROWID;

INSERT INTO gateway_nodes
SELECT t.number, n.seq, n.place, n.node, n.call FROM old_gateway_nodes n JOIN threads t ON t.id = n.thread_id;
DROP TABLE old_gateway_nodes;
CREATE INDEX gateway_nodes_by_node ON gateway_nodes (node) WHERE call > 0;
