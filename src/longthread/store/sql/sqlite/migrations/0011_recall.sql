-- The index by which entries are found. It follows from the entries, and can be dropped and made again.

-- Which entries are indexed: from `first_seq` to `last_seq`, by the terms of `form`. `times` has their places and times.
CREATE TABLE recall_segments (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    first_seq INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL,
    form      INTEGER NOT NULL,
    entries   INTEGER NOT NULL,
    words     INTEGER NOT NULL,
    times     BLOB NOT NULL,
    PRIMARY KEY (thread_id, first_seq)
);

-- Where the terms of one bucket stand in the segment that begins with entry `segment`.
CREATE TABLE recall_postings (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    bucket    INTEGER NOT NULL,
    segment   INTEGER NOT NULL,
    data      BLOB NOT NULL,
    PRIMARY KEY (thread_id, bucket, segment)
);

-- Where branches begin: all other entries stand behind the one that was written before them.
CREATE INDEX entries_apart ON entries (thread_id, seq) WHERE parent_seq <> seq - 1;

-- A vector of an entry says which, and which model made it.
ALTER TABLE memory_vectors ADD COLUMN seq INTEGER;
ALTER TABLE memory_vectors ADD COLUMN model TEXT;
CREATE INDEX memory_vectors_of_entries ON memory_vectors (thread_id, model, seq) WHERE seq IS NOT NULL;
