-- Entries are found by a hash of their ids: whole ids of threads and entries were a tenth of the database. That a thread
-- has each id once is checked under the thread's lock, before an entry is written.

DROP INDEX entries_by_id;
CREATE INDEX entries_by_id ON entries USING hash ((thread_id || ' ' || id));

-- Entries and runs come one behind the other, and what was written is not changed: their keys need no room for more.
ALTER INDEX entries_pkey SET (fillfactor = 100);
ALTER INDEX runs_pkey SET (fillfactor = 100);
