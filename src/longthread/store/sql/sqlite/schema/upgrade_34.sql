-- From version 34 to version 35: the gateway.

CREATE TABLE upstreams (
    id          TEXT PRIMARY KEY NOT NULL DEFAULT (
        lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
            || substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    name        TEXT NOT NULL UNIQUE CHECK (length(name) <= 100),
    description TEXT,
    base_url    TEXT NOT NULL,
    dialects    TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(dialects)),
    api_key     TEXT,
    holds_state INTEGER DEFAULT FALSE CHECK (holds_state IN (FALSE, TRUE)),
    is_active   INTEGER DEFAULT TRUE CHECK (is_active IN (FALSE, TRUE)),
    created_at  TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
    updated_at  TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))
);

CREATE TABLE routes (
    id          TEXT PRIMARY KEY NOT NULL DEFAULT (
        lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
            || substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    name        TEXT NOT NULL UNIQUE CHECK (length(name) <= 100),
    description TEXT,
    models      TEXT NOT NULL,
    upstream    TEXT NOT NULL,
    model       TEXT,
    is_active   INTEGER DEFAULT TRUE CHECK (is_active IN (FALSE, TRUE)),
    created_at  TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
    updated_at  TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))
);

CREATE TABLE gateway_frames (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    id        TEXT NOT NULL,
    body      BLOB NOT NULL,
    PRIMARY KEY (thread_id, id)
);

CREATE TABLE gateway_calls (
    thread_id   TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    n           INTEGER NOT NULL,
    response_id TEXT,
    dialect     TEXT NOT NULL,
    upstream    TEXT NOT NULL,
    family      TEXT NOT NULL,
    model       TEXT NOT NULL,
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
    usage       TEXT NOT NULL DEFAULT '{}',
    head        BLOB,
    started_at  TEXT NOT NULL,
    elapsed_ms  INTEGER NOT NULL,
    PRIMARY KEY (thread_id, n)
) WITHOUT ROWID;

CREATE TABLE gateway_nodes (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seq       INTEGER NOT NULL,
    place     INTEGER NOT NULL,
    node      INTEGER NOT NULL,
    call      INTEGER NOT NULL,
    PRIMARY KEY (thread_id, seq, place)
) WITHOUT ROWID;

CREATE INDEX gateway_nodes_by_node ON gateway_nodes (node);

ALTER TABLE thread_clients ADD COLUMN client TEXT NOT NULL DEFAULT 'unknown';

ALTER TABLE catalog_versions RENAME TO old_catalog_versions;

CREATE TABLE catalog_versions (
    kind    TEXT NOT NULL CHECK (kind IN ('agent', 'skill', 'tool', 'source', 'upstream', 'route')),
    item_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    name    TEXT NOT NULL,
    body    TEXT,
    made_at TEXT NOT NULL,
    made_by TEXT,
    PRIMARY KEY (kind, item_id, version)
);

INSERT INTO catalog_versions SELECT * FROM old_catalog_versions;
DROP TABLE old_catalog_versions;
CREATE INDEX catalog_versions_of_name ON catalog_versions (kind, name);
