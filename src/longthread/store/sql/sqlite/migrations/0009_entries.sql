-- Entries are found by a part of their ids and of their thread's: whole UUIDs were a tenth of the database. Of a UUID it is
-- one that differs, whatever its version; any other id is there whole.
-- That a thread has each id once is checked under the thread's lock, before an entry is written.

DROP INDEX entries_by_id;
CREATE INDEX entries_by_id ON entries (
    CASE WHEN length(thread_id) = 36 AND substr(thread_id, -8) GLOB '[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'
         THEN substr(thread_id, -6) ELSE thread_id END
    || CASE WHEN length(id) = 36 AND substr(id, -8) GLOB '[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'
            THEN substr(id, 11, 3) || substr(id, -8) ELSE id END
);
