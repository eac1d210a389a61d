-- name: lock_catalog
-- Held to the end of the transaction: one changes the catalog at a time, and readers wait for nobody.
SELECT pg_advisory_xact_lock(1280265795) IS NULL AS locked;

-- name: select_definitions
-- All, or those of a kind that have one of these ids or names.
SELECT d.kind, d.id, d.name, d.body, d.created_at, d.updated_at, v.version, v.name AS said_name, v.body AS said, v.made_by
FROM (
    SELECT CAST('agent' AS TEXT) COLLATE "C" AS kind, CAST(id AS TEXT) COLLATE "C" AS id, name,
           CAST(jsonb_build_object(
               'description', description, 'system_prompt', system_prompt, 'config', config, 'skills', skills,
               'sub_agents', sub_agents, 'is_active', is_active) AS TEXT) AS body,
           created_at, updated_at
    FROM agents
    UNION ALL
    SELECT 'skill', CAST(id AS TEXT), name, CAST(jsonb_build_object(
               'description', description, 'trigger_keywords', trigger_keywords, 'tools', tools,
               'config', config) AS TEXT),
           created_at, updated_at
    FROM skills
    UNION ALL
    SELECT 'tool', CAST(id AS TEXT), name, CAST(jsonb_build_object(
               'type', type, 'description', description, 'schema', schema, 'implementation', implementation,
               'is_active', is_active) AS TEXT),
           created_at, updated_at
    FROM tools
    UNION ALL
    SELECT 'source', CAST(id AS TEXT), name, CAST(jsonb_build_object(
               'description', description, 'address', address, 'is_active', is_active, 'terms', terms,
               'examples', examples) AS TEXT),
           created_at, updated_at
    FROM sources
) d
LEFT JOIN catalog_versions v ON v.kind = d.kind AND v.item_id = d.id AND v.version = (
    SELECT max(x.version) FROM catalog_versions x WHERE x.kind = d.kind AND x.item_id = d.id)
WHERE CAST(:kind AS TEXT) IS NULL OR (d.kind = :kind AND (d.id IN (TEXTS :ids) OR d.name IN (TEXTS :names)))
ORDER BY d.kind COLLATE "C", d.name COLLATE "C", d.id COLLATE "C";

-- name: put_agent
INSERT INTO agents (id, name, description, system_prompt, config, skills, sub_agents, is_active, created_at, updated_at)
VALUES (:id, :name, :description, :system_prompt, CAST(:config AS JSONB),
        ARRAY(SELECT json_array_elements_text(CAST(:skills AS JSON))),
        ARRAY(SELECT json_array_elements_text(CAST(:sub_agents AS JSON))),
        CAST(CAST(:is_active AS INTEGER) AS BOOLEAN), CAST(:now AS TIMESTAMPTZ), CAST(:now AS TIMESTAMPTZ))
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, description = excluded.description, system_prompt = excluded.system_prompt,
    config = excluded.config, skills = excluded.skills, sub_agents = excluded.sub_agents, is_active = excluded.is_active;

-- name: put_skill
INSERT INTO skills (id, name, description, trigger_keywords, tools, config, is_builtin, created_at, updated_at)
VALUES (:id, :name, :description, ARRAY(SELECT json_array_elements_text(CAST(:trigger_keywords AS JSON))),
        CAST(:tools AS JSONB), CAST(:config AS JSONB), FALSE, CAST(:now AS TIMESTAMPTZ), CAST(:now AS TIMESTAMPTZ))
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, description = excluded.description, trigger_keywords = excluded.trigger_keywords,
    tools = excluded.tools, config = excluded.config;

-- name: put_tool
INSERT INTO tools (id, name, type, description, schema, implementation, is_active, created_at, updated_at)
VALUES (:id, :name, :type, :description, CAST(:schema AS JSONB), CAST(:implementation AS JSONB),
        CAST(CAST(:is_active AS INTEGER) AS BOOLEAN), CAST(:now AS TIMESTAMPTZ), CAST(:now AS TIMESTAMPTZ))
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, type = excluded.type, description = excluded.description, schema = excluded.schema,
    implementation = excluded.implementation, is_active = excluded.is_active;

-- name: put_source
INSERT INTO sources (id, name, description, address, is_active, terms, examples, created_at, updated_at)
VALUES (:id, :name, :description, :address, CAST(CAST(:is_active AS INTEGER) AS BOOLEAN), CAST(:terms AS JSONB),
        CAST(:examples AS JSONB), CAST(:now AS TIMESTAMPTZ), CAST(:now AS TIMESTAMPTZ))
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, description = excluded.description, address = excluded.address, is_active = excluded.is_active,
    terms = excluded.terms, examples = excluded.examples;

-- name: delete_agent
DELETE FROM agents WHERE id = CAST(:id AS UUID);

-- name: delete_skill
DELETE FROM skills WHERE id = CAST(:id AS UUID);

-- name: delete_tool
DELETE FROM tools WHERE id = CAST(:id AS UUID);

-- name: delete_source
DELETE FROM sources WHERE id = CAST(:id AS UUID);

-- name: count_belongings
-- What goes with an agent.
SELECT (SELECT count(*) FROM threads WHERE agent_id = CAST(:id AS TEXT)) AS threads,
       (SELECT count(*) FROM memories WHERE agent_id = CAST(CAST(:id AS TEXT) AS UUID)) AS memories;

-- name: insert_builtin_agent
INSERT INTO agents (id, name, description, system_prompt, config, skills, sub_agents, is_active, created_at, updated_at)
VALUES (CAST(:id AS UUID), :name, :description, :system_prompt, CAST(:config AS JSONB),
        ARRAY(SELECT json_array_elements_text(CAST(:skills AS JSON))),
        ARRAY(SELECT json_array_elements_text(CAST(:sub_agents AS JSON))),
        CAST(CAST(:is_active AS INTEGER) AS BOOLEAN), CAST(:now AS TIMESTAMPTZ), CAST(:now AS TIMESTAMPTZ))
ON CONFLICT (id) DO NOTHING;

-- name: insert_builtin_skill
INSERT INTO skills (id, name, description, trigger_keywords, tools, config, is_builtin, created_at, updated_at)
VALUES (CAST(:id AS UUID), :name, :description, ARRAY(SELECT json_array_elements_text(CAST(:trigger_keywords AS JSON))),
        CAST(:tools AS JSONB), CAST(:config AS JSONB), TRUE, CAST(:now AS TIMESTAMPTZ), CAST(:now AS TIMESTAMPTZ))
ON CONFLICT DO NOTHING;
