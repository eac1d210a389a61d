-- The one mark of a thread: its summary tells of the entries of a branch from `first_seq` to `last_seq`, and the hot window
-- begins behind the last. `digest` is what is told of them without a model, as JSON; `model` wrote the summary, or NULL.
ALTER TABLE conversation_summaries ADD COLUMN first_seq BIGINT;
ALTER TABLE conversation_summaries ADD COLUMN last_seq BIGINT;
ALTER TABLE conversation_summaries ADD COLUMN model TEXT COLLATE "C";
ALTER TABLE conversation_summaries ADD COLUMN digest TEXT COLLATE "C";
