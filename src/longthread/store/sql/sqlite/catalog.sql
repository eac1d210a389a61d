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
               'examples', json(examples), 'semantics', json(semantics)),
           created_at, updated_at
    FROM sources
    UNION ALL
    SELECT 'upstream', id, name, json_object(
               'description', description, 'base_url', base_url, 'dialects', json(dialects), 'api_key', api_key,
               'holds_state', holds_state, 'is_active', is_active),
           created_at, updated_at
    FROM upstreams
    UNION ALL
    SELECT 'route', id, name, json_object(
               'description', description, 'models', models, 'upstream', upstream, 'model', model,
               'is_active', is_active),
           created_at, updated_at
    FROM routes
) d
LEFT JOIN catalog_versions v ON v.kind = d.kind AND v.item_id = d.id AND v.version = (
    SELECT max(x.version) FROM catalog_versions x WHERE x.kind = d.kind AND x.item_id = d.id)
WHERE CAST(:kind AS TEXT) IS NULL OR (d.kind = :kind AND (d.id AMONG_TEXTS[:ids] OR d.name AMONG_TEXTS[:names]))
ORDER BY d.kind, d.name, d.id;
