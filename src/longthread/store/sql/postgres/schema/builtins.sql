-- The rows of the built-in definitions, the same in every store. Every change of the schema writes them again, as this
-- Longthread has them, without the triggers that would refuse or date that.

ALTER TABLE agents DISABLE TRIGGER USER;
ALTER TABLE skills DISABLE TRIGGER USER;

BUILTIN_ROWS;

ALTER TABLE agents ENABLE TRIGGER USER;
ALTER TABLE skills ENABLE TRIGGER USER;

-- A statement of another program leaves the built-in rows as they are, and changes the others that it names.
CREATE OR REPLACE FUNCTION keep_builtin() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    RAISE WARNING '%: % is built in, and stays as it is; make one of your own', TG_TABLE_NAME, OLD.name;
    RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER agents_builtin BEFORE UPDATE OR DELETE ON agents
    FOR EACH ROW WHEN (CAST(OLD.id AS TEXT) IN (BUILTIN_IDS)) EXECUTE FUNCTION keep_builtin();
CREATE OR REPLACE TRIGGER skills_builtin BEFORE UPDATE OR DELETE ON skills
    FOR EACH ROW WHEN (CAST(OLD.id AS TEXT) IN (BUILTIN_IDS)) EXECUTE FUNCTION keep_builtin();
