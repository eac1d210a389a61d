-- From version 26 to version 33.

CREATE TABLE message_metadata (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seq       INTEGER NOT NULL,
    data      TEXT NOT NULL,
    PRIMARY KEY (thread_id, seq)
) WITHOUT ROWID;

CREATE TABLE context_windows (
    model      TEXT NOT NULL,
    endpoint   TEXT NOT NULL,
    assumed    INTEGER NOT NULL,
    tokens     INTEGER NOT NULL,
    learned_at TEXT NOT NULL,
    PRIMARY KEY (model, endpoint, assumed)
);

ALTER TABLE memory_sources ADD COLUMN origin TEXT;
ALTER TABLE sources ADD COLUMN terms TEXT DEFAULT '[]' CHECK (json_valid(terms));
ALTER TABLE sources ADD COLUMN examples TEXT DEFAULT '[]' CHECK (json_valid(examples));

CREATE INDEX entries_by_message ON entries (
    thread_id, CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.message_id') END
) WHERE CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.message_id') END IS NOT NULL;

-- Whether a message goes on with a run was told by its words alone. A metadata's text ends with its brace.
UPDATE entries SET metadata = substr(metadata, 1, length(metadata) - 1) || ',"continues":true}'
WHERE role = 'user' AND length(text) < 60 AND metadata LIKE '{%"kind":"question"%}'
  AND lower(trim(trim(text, char(
      9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 133, 160, 5760, 8192, 8193, 8194, 8195, 8196, 8197, 8198,
      8199, 8200, 8201, 8202, 8232, 8233, 8239, 8287, 12288)), '。.!！~ '))
  IN ('继续', '请继续', '继续吧', '接着', 'continue', 'go on', 'please continue', 'resume');
