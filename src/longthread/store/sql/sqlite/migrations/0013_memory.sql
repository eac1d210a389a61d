-- The one mark of a thread: its summary tells of the entries of a branch from `first_seq` to `last_seq`, and the hot window
-- begins behind the last. `digest` is what is told of them without a model, as JSON; `model` wrote the summary, or NULL.
ALTER TABLE conversation_summaries ADD COLUMN first_seq INTEGER;
ALTER TABLE conversation_summaries ADD COLUMN last_seq INTEGER;
ALTER TABLE conversation_summaries ADD COLUMN model TEXT;
ALTER TABLE conversation_summaries ADD COLUMN digest TEXT;
