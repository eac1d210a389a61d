-- Entries are found by their ids through the beginnings and ends of these: whole ids of threads and entries were a tenth of
-- the database. That a thread has each id once is checked under the thread's lock, before an entry is written.

DROP INDEX entries_by_id;
CREATE INDEX entries_by_id ON entries (
    substr(thread_id, 1, 6) || substr(thread_id, -6) || substr(id, 1, 10) || substr(id, -10)
);
