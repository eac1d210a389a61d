-- The catalog: databases that may be asked, what each definition was at any time, and what a run ran.

-- A password in an address is the name of a secret, `${NAME}`.
CREATE TABLE sources (
    id          UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    name        VARCHAR(100) COLLATE "C" NOT NULL UNIQUE,
    description TEXT COLLATE "C",
    address     TEXT COLLATE "C" NOT NULL,
    is_active   BOOLEAN DEFAULT TRUE,
    created_at  TIMESTAMPTZ DEFAULT now(),
    updated_at  TIMESTAMPTZ DEFAULT now()
);

CREATE TRIGGER sources_updated_at BEFORE UPDATE ON sources FOR EACH ROW EXECUTE FUNCTION update_updated_at();

-- What agents, skills, tools and sources were from a moment on; `body` is NULL where one was deleted. Rows are only added.
CREATE TABLE catalog_versions (
    kind    TEXT COLLATE "C" NOT NULL CHECK (kind IN ('agent', 'skill', 'tool', 'source')),
    item_id TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    name    TEXT COLLATE "C" NOT NULL,
    body    TEXT COLLATE "C",
    made_at TEXT COLLATE "C" NOT NULL,
    made_by TEXT COLLATE "C",
    PRIMARY KEY (kind, item_id, version)
);

CREATE INDEX catalog_versions_of_name ON catalog_versions (kind, name);

-- The agent of a run and its version, NULL for the analyst, and the versions of what belonged to it:
-- `{"skill":{id:version},…}`.
ALTER TABLE runs ADD COLUMN agent_id TEXT COLLATE "C";
ALTER TABLE runs ADD COLUMN agent_version BIGINT;
ALTER TABLE runs ADD COLUMN agent_parts TEXT COLLATE "C";

-- The analyst's row is the same in every store, whenever it was made: its times stay.
ALTER TABLE agents DISABLE TRIGGER agents_updated_at;
UPDATE agents
SET system_prompt = 'You are Longthread''s analyst. You answer questions about a database with its tools, in a lasting conversation.',
    skills = '{6c6f6e67-7468-5265-8164-617461000000,6c6f6e67-7468-5265-816d-656d6f727900}'
WHERE id = '6c6f6e67-7468-5265-8164-616e616c7973' AND system_prompt = 'Built in.';
ALTER TABLE agents ENABLE TRIGGER agents_updated_at;
