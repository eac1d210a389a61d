-- A thread that is deleted and brought back by an import is as old as it was, and may have other entries: what a process
-- remembers of it is told from it by a mark that each row gets anew, and that goes into no copy.
ALTER TABLE threads ADD COLUMN incarnation TEXT COLLATE "C";
UPDATE threads SET incarnation = gen_random_uuid();

CREATE OR REPLACE FUNCTION number_thread() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE threads SET number = nextval('thread_numbers'), incarnation = gen_random_uuid() WHERE id = NEW.id;
    RETURN NULL;
END;
$$;
