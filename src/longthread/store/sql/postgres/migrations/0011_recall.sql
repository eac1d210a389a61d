-- The index by which entries are found. It follows from the entries, and can be dropped and made again.

-- Which entries are indexed: from `first_seq` to `last_seq`, by the terms of `form`. `times` has their places and times.
CREATE TABLE recall_segments (
    thread_id TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    first_seq BIGINT NOT NULL,
    last_seq  BIGINT NOT NULL,
    form      BIGINT NOT NULL,
    entries   BIGINT NOT NULL,
    words     BIGINT NOT NULL,
    times     BYTEA NOT NULL,
    PRIMARY KEY (thread_id, first_seq)
);

-- Where the terms of one bucket stand in the segment that begins with entry `segment`.
CREATE TABLE recall_postings (
    thread_id TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    bucket    BIGINT NOT NULL,
    segment   BIGINT NOT NULL,
    data      BYTEA NOT NULL,
    PRIMARY KEY (thread_id, bucket, segment)
);

-- Hashes do not get smaller, and would be taken apart for every question.
ALTER TABLE recall_postings ALTER COLUMN data SET STORAGE EXTERNAL;

-- Where branches begin: all other entries stand behind the one that was written before them.
CREATE INDEX entries_apart ON entries (thread_id, seq) WHERE parent_seq <> seq - 1;

-- A vector of an entry says which, and which model made it.
ALTER TABLE memory_vectors ADD COLUMN seq BIGINT;
ALTER TABLE memory_vectors ADD COLUMN model TEXT COLLATE "C";
CREATE INDEX memory_vectors_of_entries ON memory_vectors (thread_id, model, seq) WHERE seq IS NOT NULL;

-- Any model's vectors: an index is for one number of dimensions. Those without one are compared one by one.
ALTER TABLE memory_vectors ALTER COLUMN embedding TYPE VECTOR;
CREATE INDEX memory_vectors_384 ON memory_vectors USING hnsw ((embedding::VECTOR(384)) vector_cosine_ops)
    WHERE vector_dims(embedding) = 384;
CREATE INDEX memory_vectors_512 ON memory_vectors USING hnsw ((embedding::VECTOR(512)) vector_cosine_ops)
    WHERE vector_dims(embedding) = 512;
CREATE INDEX memory_vectors_768 ON memory_vectors USING hnsw ((embedding::VECTOR(768)) vector_cosine_ops)
    WHERE vector_dims(embedding) = 768;
CREATE INDEX memory_vectors_1024 ON memory_vectors USING hnsw ((embedding::VECTOR(1024)) vector_cosine_ops)
    WHERE vector_dims(embedding) = 1024;
CREATE INDEX memory_vectors_1536 ON memory_vectors USING hnsw ((embedding::VECTOR(1536)) vector_cosine_ops)
    WHERE vector_dims(embedding) = 1536;
