-- From version 36 to version 37: what the gateway keeps takes less.

CREATE UNIQUE INDEX threads_by_number ON threads (number);

CREATE TABLE old_gateway_frames AS SELECT * FROM gateway_frames;
DROP TABLE gateway_frames;

CREATE TABLE gateway_frames (
    thread_id TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    id        TEXT COLLATE "C" NOT NULL,
    dialect   TEXT COLLATE "C",
    upstream  TEXT COLLATE "C",
    family    TEXT COLLATE "C",
    model     TEXT COLLATE "C",
    body      BYTEA NOT NULL,
    PRIMARY KEY (thread_id, id)
);

INSERT INTO gateway_frames (thread_id, id, body) SELECT thread_id, id, body FROM old_gateway_frames;
DROP TABLE old_gateway_frames;

ALTER TABLE gateway_calls ALTER COLUMN dialect DROP NOT NULL;
ALTER TABLE gateway_calls ALTER COLUMN upstream DROP NOT NULL;
ALTER TABLE gateway_calls ALTER COLUMN family DROP NOT NULL;
ALTER TABLE gateway_calls ALTER COLUMN model DROP NOT NULL;
ALTER TABLE gateway_calls ALTER COLUMN usage DROP NOT NULL;
ALTER TABLE gateway_calls ALTER COLUMN usage DROP DEFAULT;
ALTER TABLE gateway_calls ALTER COLUMN started_at TYPE BIGINT
    USING CAST(extract(epoch FROM CAST(started_at AS TIMESTAMPTZ)) * 1000000 AS BIGINT);

CREATE TABLE old_gateway_nodes AS SELECT * FROM gateway_nodes;
DROP TABLE gateway_nodes;

CREATE TABLE gateway_nodes (
    thread BIGINT NOT NULL REFERENCES threads (number) ON DELETE CASCADE,
    seq    BIGINT NOT NULL,
    place  BIGINT NOT NULL,
    node   BIGINT NOT NULL,
    call   BIGINT NOT NULL,
    PRIMARY KEY (thread, seq, place)
);

INSERT INTO gateway_nodes
SELECT t.number, n.seq, n.place, n.node, n.call FROM old_gateway_nodes n JOIN threads t ON t.id = n.thread_id;
DROP TABLE old_gateway_nodes;
CREATE INDEX gateway_nodes_by_node ON gateway_nodes (node) WHERE call > 0;
