-- What a model had read when it said a memory, as JSON: `{"source", "results"}`; NULL: nothing but the conversation.
ALTER TABLE memory_sources ADD COLUMN origin TEXT;
