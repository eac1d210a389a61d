-- Which stretches of a thread are about a topic: what `memory_topics` adds up, and what recall by a topic is narrowed to.
CREATE TABLE memory_topic_spans (
    thread_id TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    topic     TEXT COLLATE "C" NOT NULL,
    first_seq BIGINT NOT NULL,
    last_seq  BIGINT NOT NULL,
    mentions  BIGINT NOT NULL,
    seen_at   TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (thread_id, topic, first_seq)
);

-- The signs of the vectors of 1,024 entries that follow one another, one bit a number: which may be near is seen without
-- reading the vectors. `stamp` tells whether one that is in memory is the same.
CREATE TABLE recall_signatures (
    thread_id TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    model     TEXT COLLATE "C" NOT NULL,
    block     BIGINT NOT NULL,
    stamp     TEXT COLLATE "C" NOT NULL,
    data      BYTEA NOT NULL,
    PRIMARY KEY (thread_id, model, block)
);

-- Bits do not get smaller.
ALTER TABLE recall_signatures ALTER COLUMN data SET STORAGE EXTERNAL;

-- How far a thread has vectors of a model: up to entry `last_seq`, those that can have one. From entry `signed_from` on all
-- have their signatures; NULL: nobody has looked yet. `refused` of them the embedder did not take.
CREATE TABLE recall_embedded (
    thread_id   TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    model       TEXT COLLATE "C" NOT NULL,
    last_seq    BIGINT NOT NULL,
    signed_from BIGINT,
    refused     BIGINT NOT NULL,
    PRIMARY KEY (thread_id, model)
);
