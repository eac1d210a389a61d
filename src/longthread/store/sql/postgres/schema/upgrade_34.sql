-- From version 34 to version 35: the gateway.

CREATE TABLE upstreams (
    id          UUID PRIMARY KEY NOT NULL DEFAULT gen_random_uuid(),
    name        VARCHAR(100) COLLATE "C" NOT NULL UNIQUE,
    description TEXT COLLATE "C",
    base_url    TEXT COLLATE "C" NOT NULL,
    dialects    JSONB NOT NULL DEFAULT '[]',
    api_key     TEXT COLLATE "C",
    holds_state BOOLEAN DEFAULT FALSE,
    is_active   BOOLEAN DEFAULT TRUE,
    created_at  TIMESTAMPTZ DEFAULT now(),
    updated_at  TIMESTAMPTZ DEFAULT now()
);

CREATE TABLE routes (
    id          UUID PRIMARY KEY NOT NULL DEFAULT gen_random_uuid(),
    name        VARCHAR(100) COLLATE "C" NOT NULL UNIQUE,
    description TEXT COLLATE "C",
    models      TEXT COLLATE "C" NOT NULL,
    upstream    TEXT COLLATE "C" NOT NULL,
    model       TEXT COLLATE "C",
    is_active   BOOLEAN DEFAULT TRUE,
    created_at  TIMESTAMPTZ DEFAULT now(),
    updated_at  TIMESTAMPTZ DEFAULT now()
);

CREATE TABLE gateway_frames (
    thread_id TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    id        TEXT COLLATE "C" NOT NULL,
    body      BYTEA NOT NULL,
    PRIMARY KEY (thread_id, id)
);

CREATE TABLE gateway_calls (
    thread_id   TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    n           BIGINT NOT NULL,
    response_id TEXT COLLATE "C",
    dialect     TEXT COLLATE "C" NOT NULL,
    upstream    TEXT COLLATE "C" NOT NULL,
    family      TEXT COLLATE "C" NOT NULL,
    model       TEXT COLLATE "C" NOT NULL,
    frame       TEXT COLLATE "C" NOT NULL,
    tools       BIGINT NOT NULL,
    status      BIGINT NOT NULL,
    asked_seq   BIGINT NOT NULL,
    reply_seq   BIGINT,
    reply_end   BIGINT,
    asked       BIGINT NOT NULL,
    ends        BIGINT NOT NULL,
    previous    BIGINT NOT NULL DEFAULT 0,
    base        BIGINT NOT NULL DEFAULT 0,
    hidden      BYTEA,
    hidden_hash BYTEA,
    restored    BIGINT NOT NULL DEFAULT 0,
    dropped     BIGINT NOT NULL DEFAULT 0,
    refused     BOOLEAN NOT NULL DEFAULT FALSE,
    usage       TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    head        BYTEA,
    started_at  TEXT COLLATE "C" NOT NULL,
    elapsed_ms  BIGINT NOT NULL,
    PRIMARY KEY (thread_id, n)
);

CREATE TABLE gateway_nodes (
    thread_id TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seq       BIGINT NOT NULL,
    place     BIGINT NOT NULL,
    node      BIGINT NOT NULL,
    call      BIGINT NOT NULL,
    PRIMARY KEY (thread_id, seq, place)
);

CREATE INDEX gateway_nodes_by_node ON gateway_nodes (node);

ALTER TABLE thread_clients ADD COLUMN client TEXT COLLATE "C" NOT NULL DEFAULT 'unknown';

ALTER TABLE catalog_versions DROP CONSTRAINT catalog_versions_kind_check;
ALTER TABLE catalog_versions ADD CONSTRAINT catalog_versions_kind_check
    CHECK (kind IN ('agent', 'skill', 'tool', 'source', 'upstream', 'route'));
