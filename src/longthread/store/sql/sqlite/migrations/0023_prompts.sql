-- Prompts are some kilobytes long. In a table without row ids a value of that length goes onto a page of its own, most of
-- which stays empty; in one with row ids several share a page.

CREATE TABLE prompts_new (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    id        TEXT NOT NULL,
    body      BLOB NOT NULL,
    PRIMARY KEY (thread_id, id)
);

INSERT INTO prompts_new (thread_id, id, body) SELECT thread_id, id, body FROM prompts;

DROP TABLE prompts;
ALTER TABLE prompts_new RENAME TO prompts;
