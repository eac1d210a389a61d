-- Checkpoints are found by a hash of their thread's id: whole ids of threads were half of the index. Ids come in the order of
-- time, as numbers do, so that the pages of both indexes need no room.

DROP INDEX checkpoints_by_id;
CREATE UNIQUE INDEX checkpoints_by_id ON checkpoints (hashtextextended(thread_id, 0), ns, id) WITH (fillfactor = 100);
ALTER INDEX checkpoints_pkey SET (fillfactor = 100);

-- Metadata that is but a number, here and on SQLite, is that of a step: {"source":"loop","step":7,"parents":{}}.
