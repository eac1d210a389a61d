-- The rows of the built-in definitions, the same in every store. Every change of the schema writes them again, as this
-- Longthread has them, without the triggers that would refuse or date that.

DROP TRIGGER IF EXISTS agents_updated_at;
DROP TRIGGER IF EXISTS skills_updated_at;
DROP TRIGGER IF EXISTS agents_builtin_update;
DROP TRIGGER IF EXISTS skills_builtin_update;
DROP TRIGGER IF EXISTS agents_builtin_delete;
DROP TRIGGER IF EXISTS skills_builtin_delete;

BUILTIN_ROWS;

-- Document 002: `updated_at` follows each change. 'now' is one moment within a statement, so that a trigger that sets it ends
-- when it fires for its own change.
-- A statement of another program leaves the built-in rows as they are, and changes the others that it names.

CREATE TRIGGER agents_updated_at AFTER UPDATE ON agents
WHEN NEW.updated_at IS NOT strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
BEGIN
    UPDATE agents SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now') WHERE id = NEW.id;
END;

CREATE TRIGGER agents_builtin_update BEFORE UPDATE ON agents WHEN OLD.id IN (BUILTIN_IDS)
BEGIN
    SELECT RAISE(IGNORE);
END;

CREATE TRIGGER agents_builtin_delete BEFORE DELETE ON agents WHEN OLD.id IN (BUILTIN_IDS)
BEGIN
    SELECT RAISE(IGNORE);
END;

CREATE TRIGGER skills_updated_at AFTER UPDATE ON skills
WHEN NEW.updated_at IS NOT strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
BEGIN
    UPDATE skills SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now') WHERE id = NEW.id;
END;

CREATE TRIGGER skills_builtin_update BEFORE UPDATE ON skills WHEN OLD.id IN (BUILTIN_IDS)
BEGIN
    SELECT RAISE(IGNORE);
END;

CREATE TRIGGER skills_builtin_delete BEFORE DELETE ON skills WHEN OLD.id IN (BUILTIN_IDS)
BEGIN
    SELECT RAISE(IGNORE);
END;
