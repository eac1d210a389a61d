-- Which stretches of a thread are about a topic: what `memory_topics` adds up, and what recall by a topic is narrowed to.
CREATE TABLE memory_topic_spans (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    topic     TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL,
    mentions  INTEGER NOT NULL,
    seen_at   TEXT NOT NULL,
    PRIMARY KEY (thread_id, topic, first_seq)
);

-- The signs of the vectors of 1,024 entries that follow one another, one bit a number: which may be near is seen without
-- reading the vectors. `stamp` tells whether one that is in memory is the same.
CREATE TABLE recall_signatures (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    model     TEXT NOT NULL,
    block     INTEGER NOT NULL,
    stamp     TEXT NOT NULL,
    data      BLOB NOT NULL,
    PRIMARY KEY (thread_id, model, block)
);

-- How far a thread has vectors of a model: up to entry `last_seq`, those that can have one. From entry `signed_from` on all
-- have their signatures; NULL: nobody has looked yet. `refused` of them the embedder did not take.
CREATE TABLE recall_embedded (
    thread_id   TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    model       TEXT NOT NULL,
    last_seq    INTEGER NOT NULL,
    signed_from INTEGER,
    refused     INTEGER NOT NULL,
    PRIMARY KEY (thread_id, model)
);
