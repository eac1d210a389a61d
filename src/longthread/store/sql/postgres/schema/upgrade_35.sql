-- From version 35 to version 36: a changed message is one new entry, which takes the place of the first version.

ALTER TABLE entries ADD COLUMN replaces BIGINT;

CREATE INDEX entries_replacing ON entries (thread_id, replaces, seq) WHERE replaces IS NOT NULL;
