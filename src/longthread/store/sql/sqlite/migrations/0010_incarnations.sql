-- A thread that is deleted and brought back by an import is as old as it was, and may have other entries: what a process
-- remembers of it is told from it by a mark that each row gets anew, and that goes into no copy.
ALTER TABLE threads ADD COLUMN incarnation TEXT;
UPDATE threads SET incarnation = lower(hex(randomblob(8)));

DROP TRIGGER thread_number;
CREATE TRIGGER thread_number AFTER INSERT ON threads
BEGIN
    UPDATE threads SET number = (SELECT coalesce(max(number), 0) + 1 FROM threads WHERE id <> NEW.id),
                       incarnation = lower(hex(randomblob(8)))
    WHERE id = NEW.id;
END;
