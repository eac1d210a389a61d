-- Entries are found by their ids through the ends of these: whole ids of threads and entries were a tenth of the database.
-- That a thread has each id once is checked under the thread's lock, before an entry is written.

DROP INDEX entries_by_id;
CREATE INDEX entries_by_id ON entries (substr(thread_id, -8) || substr(id, -8));
