-- The catalog: databases that may be asked, what each definition was at any time, and what a run ran.

-- A password in an address is the name of a secret, `${NAME}`.
CREATE TABLE sources (
    id          TEXT PRIMARY KEY NOT NULL DEFAULT (
        lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
            || substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    name        TEXT NOT NULL UNIQUE CHECK (length(name) <= 100),
    description TEXT,
    address     TEXT NOT NULL,
    is_active   INTEGER DEFAULT TRUE CHECK (is_active IN (FALSE, TRUE)),
    created_at  TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
    updated_at  TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))
);

CREATE TRIGGER sources_updated_at AFTER UPDATE ON sources
WHEN NEW.updated_at IS NOT strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
BEGIN
    UPDATE sources SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now') WHERE id = NEW.id;
END;

-- What agents, skills, tools and sources were from a moment on; `body` is NULL where one was deleted. Rows are only added.
CREATE TABLE catalog_versions (
    kind    TEXT NOT NULL CHECK (kind IN ('agent', 'skill', 'tool', 'source')),
    item_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    name    TEXT NOT NULL,
    body    TEXT,
    made_at TEXT NOT NULL,
    made_by TEXT,
    PRIMARY KEY (kind, item_id, version)
);

CREATE INDEX catalog_versions_of_name ON catalog_versions (kind, name);

-- The agent of a run and its version, NULL for the analyst, and the versions of what belonged to it:
-- `{"skill":{id:version},…}`.
ALTER TABLE runs ADD COLUMN agent_id TEXT;
ALTER TABLE runs ADD COLUMN agent_version INTEGER;
ALTER TABLE runs ADD COLUMN agent_parts TEXT;

-- The analyst's row is the same in every store, whenever it was made: its times stay.
DROP TRIGGER agents_updated_at;
UPDATE agents
SET system_prompt = 'You are Longthread''s analyst. You answer questions about a database with its tools, in a lasting conversation.',
    skills = '["6c6f6e67-7468-5265-8164-617461000000","6c6f6e67-7468-5265-816d-656d6f727900"]'
WHERE id = '6c6f6e67-7468-5265-8164-616e616c7973' AND system_prompt = 'Built in.';
CREATE TRIGGER agents_updated_at AFTER UPDATE ON agents
WHEN NEW.updated_at IS NOT strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
BEGIN
    UPDATE agents SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now') WHERE id = NEW.id;
END;
