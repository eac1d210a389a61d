-- name: lock_catalog
-- There is one writer at a time.
SELECT 1 AS locked;

-- name: select_definitions
-- All, or those of a kind that have one of these ids or names.
SELECT d.kind, d.id, d.name, d.body, d.created_at, d.updated_at, v.version, v.name AS said_name, v.body AS said, v.made_by
FROM (
    SELECT 'agent' AS kind, id, name, json_object(
               'description', description, 'system_prompt', system_prompt, 'config', json(config),
               'skills', json(skills), 'sub_agents', json(sub_agents), 'is_active', is_active) AS body,
           created_at, updated_at
    FROM agents
    UNION ALL
    SELECT 'skill', id, name, json_object(
               'description', description, 'trigger_keywords', json(trigger_keywords), 'tools', json(tools),
               'config', json(config)),
           created_at, updated_at
    FROM skills
    UNION ALL
    SELECT 'tool', id, name, json_object(
               'type', type, 'description', description, 'schema', json(schema), 'implementation', json(implementation),
               'is_active', is_active),
           created_at, updated_at
    FROM tools
    UNION ALL
    SELECT 'source', id, name, json_object(
               'description', description, 'address', address, 'is_active', is_active, 'terms', json(terms),
               'examples', json(examples)),
           created_at, updated_at
    FROM sources
) d
LEFT JOIN catalog_versions v ON v.kind = d.kind AND v.item_id = d.id AND v.version = (
    SELECT max(x.version) FROM catalog_versions x WHERE x.kind = d.kind AND x.item_id = d.id)
WHERE CAST(:kind AS TEXT) IS NULL OR (d.kind = :kind AND (d.id IN (TEXTS :ids) OR d.name IN (TEXTS :names)))
ORDER BY d.kind, d.name, d.id;

-- name: put_agent
INSERT INTO agents (id, name, description, system_prompt, config, skills, sub_agents, is_active, created_at, updated_at)
VALUES (:id, :name, :description, :system_prompt, :config, :skills, :sub_agents, :is_active, :now, :now)
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, description = excluded.description, system_prompt = excluded.system_prompt,
    config = excluded.config, skills = excluded.skills, sub_agents = excluded.sub_agents, is_active = excluded.is_active;

-- name: put_skill
INSERT INTO skills (id, name, description, trigger_keywords, tools, config, is_builtin, created_at, updated_at)
VALUES (:id, :name, :description, :trigger_keywords, :tools, :config, FALSE, :now, :now)
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, description = excluded.description, trigger_keywords = excluded.trigger_keywords,
    tools = excluded.tools, config = excluded.config;

-- name: put_tool
INSERT INTO tools (id, name, type, description, schema, implementation, is_active, created_at, updated_at)
VALUES (:id, :name, :type, :description, :schema, :implementation, :is_active, :now, :now)
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, type = excluded.type, description = excluded.description, schema = excluded.schema,
    implementation = excluded.implementation, is_active = excluded.is_active;

-- name: insert_builtin_agent
INSERT INTO agents (id, name, description, system_prompt, config, skills, sub_agents, is_active, created_at, updated_at)
VALUES (:id, :name, :description, :system_prompt, :config, :skills, :sub_agents, :is_active, :now, :now)
ON CONFLICT (id) DO NOTHING;

-- name: insert_builtin_skill
INSERT INTO skills (id, name, description, trigger_keywords, tools, config, is_builtin, created_at, updated_at)
VALUES (:id, :name, :description, :trigger_keywords, :tools, :config, TRUE, :now, :now)
ON CONFLICT DO NOTHING;
