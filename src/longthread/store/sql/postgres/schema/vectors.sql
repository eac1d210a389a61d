-- What a store gets with pgvector, when it is made or when the first vector is needed. Until then vectors are bytes, as on
-- SQLite, and only an import or a copy writes any: 32-bit floats, the least byte first.

CREATE FUNCTION numbers_of(data BYTEA) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    bits BIGINT;
    size DOUBLE PRECISION;
    told TEXT[] := '{}';
BEGIN
    FOR at IN 0 .. length(data) / 4 - 1 LOOP
        bits := get_byte(data, 4 * at) + (get_byte(data, 4 * at + 1) << 8) + (get_byte(data, 4 * at + 2) << 16)
            + (CAST(get_byte(data, 4 * at + 3) AS BIGINT) << 24);
        size := CASE (bits >> 23) & 255 WHEN 0 THEN (bits & 8388607) * power(2.0, -149)
                     ELSE (1 + (bits & 8388607) / 8388608.0) * power(2.0, CAST((bits >> 23) & 255 AS INT) - 127) END;
        told := told || CAST(CASE WHEN bits >> 31 = 1 THEN -size ELSE size END AS TEXT);
    END LOOP;
    RETURN '[' || array_to_string(told, ',') || ']';
END
$$;

ALTER TABLE memories ALTER COLUMN embedding TYPE VECTOR(1536) USING CAST(numbers_of(embedding) AS VECTOR(1536));
ALTER TABLE memories ALTER COLUMN numbers TYPE VECTOR USING CAST(numbers_of(numbers) AS VECTOR);
ALTER TABLE memory_vectors ALTER COLUMN embedding TYPE VECTOR USING CAST(numbers_of(embedding) AS VECTOR);
ALTER TABLE item_vectors ALTER COLUMN embedding TYPE VECTOR USING CAST(numbers_of(embedding) AS VECTOR);
DROP FUNCTION numbers_of(BYTEA);

-- An index is for one number of dimensions. Vectors without an index are compared one by one. Not IVFFlat: it takes its
-- lists from the rows that exist when it is made, and there are none yet.
CREATE INDEX idx_memories_embedding ON memories USING hnsw (embedding vector_cosine_ops);
CREATE INDEX memory_vectors_384 ON memory_vectors USING hnsw ((CAST(embedding AS VECTOR(384))) vector_cosine_ops)
    WHERE vector_dims(embedding) = 384;
CREATE INDEX memory_vectors_512 ON memory_vectors USING hnsw ((CAST(embedding AS VECTOR(512))) vector_cosine_ops)
    WHERE vector_dims(embedding) = 512;
CREATE INDEX memory_vectors_768 ON memory_vectors USING hnsw ((CAST(embedding AS VECTOR(768))) vector_cosine_ops)
    WHERE vector_dims(embedding) = 768;
CREATE INDEX memory_vectors_1024 ON memory_vectors USING hnsw ((CAST(embedding AS VECTOR(1024))) vector_cosine_ops)
    WHERE vector_dims(embedding) = 1024;
CREATE INDEX memory_vectors_1536 ON memory_vectors USING hnsw ((CAST(embedding AS VECTOR(1536))) vector_cosine_ops)
    WHERE vector_dims(embedding) = 1536;

-- A program may bind the vector of a question as its text.
CREATE FUNCTION distance_to_text(embedding VECTOR, said TEXT) RETURNS DOUBLE PRECISION LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN embedding <=> CAST(said AS VECTOR);
CREATE OPERATOR <=> (LEFTARG = VECTOR, RIGHTARG = TEXT, FUNCTION = distance_to_text);
