-- From version 26 to version 33.

CREATE TABLE message_metadata (
    thread_id TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seq       BIGINT NOT NULL,
    data      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (thread_id, seq)
);

CREATE TABLE context_windows (
    model      TEXT COLLATE "C" NOT NULL,
    endpoint   TEXT COLLATE "C" NOT NULL,
    assumed    BIGINT NOT NULL,
    tokens     BIGINT NOT NULL,
    learned_at TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (model, endpoint, assumed)
);

ALTER TABLE memory_sources ADD COLUMN origin TEXT COLLATE "C";
ALTER TABLE sources ADD COLUMN terms JSONB DEFAULT '[]';
ALTER TABLE sources ADD COLUMN examples JSONB DEFAULT '[]';

CREATE INDEX entries_by_message ON entries (
    thread_id, substring(metadata FROM '"message_id":"((?:[^"\\]|\\.)*)"')
) WHERE substring(metadata FROM '"message_id":"((?:[^"\\]|\\.)*)"') IS NOT NULL;

-- The documents' ids are UUIDs, those of threads and messages may have any form: a program may bind either to either.
CREATE FUNCTION text_is_uuid(said TEXT, id UUID) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN said = CAST(id AS TEXT);
CREATE FUNCTION text_is_not_uuid(said TEXT, id UUID) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN said <> CAST(id AS TEXT);
CREATE FUNCTION uuid_is_text(id UUID, said TEXT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CAST(id AS TEXT) = said;
CREATE FUNCTION uuid_is_not_text(id UUID, said TEXT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CAST(id AS TEXT) <> said;
CREATE OPERATOR = (LEFTARG = TEXT, RIGHTARG = UUID, FUNCTION = text_is_uuid, COMMUTATOR = =, NEGATOR = <>);
CREATE OPERATOR = (LEFTARG = UUID, RIGHTARG = TEXT, FUNCTION = uuid_is_text, COMMUTATOR = =, NEGATOR = <>);
CREATE OPERATOR <> (LEFTARG = TEXT, RIGHTARG = UUID, FUNCTION = text_is_not_uuid, COMMUTATOR = <>, NEGATOR = =);
CREATE OPERATOR <> (LEFTARG = UUID, RIGHTARG = TEXT, FUNCTION = uuid_is_not_text, COMMUTATOR = <>, NEGATOR = =);

-- And the vector of a question as its text.
CREATE FUNCTION distance_to_text(embedding VECTOR, said TEXT) RETURNS DOUBLE PRECISION LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN embedding <=> CAST(said AS VECTOR);
CREATE OPERATOR <=> (LEFTARG = VECTOR, RIGHTARG = TEXT, FUNCTION = distance_to_text);

-- Whether a message goes on with a run was told by its words alone. A metadata's text ends with its brace.
UPDATE entries SET metadata = substr(metadata, 1, length(metadata) - 1) || ',"continues":true}'
WHERE role = 'user' AND length(text) < 60 AND metadata LIKE '{%"kind":"question"%}'
  AND lower(btrim(btrim(text,
      E'\t\n\u000b\f\r\u001c\u001d\u001e\u001f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005'
      '\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000'), '。.!！~ ') COLLATE "C")
  IN ('继续', '请继续', '继续吧', '接着', 'continue', 'go on', 'please continue', 'resume');
