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
               'examples', examples, 'semantics', semantics) AS TEXT),
           created_at, updated_at
    FROM sources
    UNION ALL
    SELECT 'upstream', CAST(id AS TEXT), name, CAST(jsonb_build_object(
               'description', description, 'base_url', base_url, 'dialects', dialects, 'api_key', api_key,
               'holds_state', holds_state, 'is_active', is_active) AS TEXT),
           created_at, updated_at
    FROM upstreams
    UNION ALL
    SELECT 'route', CAST(id AS TEXT), name, CAST(jsonb_build_object(
               'description', description, 'models', models, 'upstream', upstream, 'model', model,
               'is_active', is_active) AS TEXT),
           created_at, updated_at
    FROM routes
) d
LEFT JOIN catalog_versions v ON v.kind = d.kind AND v.item_id = d.id AND v.version = (
    SELECT max(x.version) FROM catalog_versions x WHERE x.kind = d.kind AND x.item_id = d.id)
WHERE CAST(:kind AS TEXT) IS NULL OR (d.kind = :kind AND (d.id AMONG_TEXTS[:ids] OR d.name AMONG_TEXTS[:names]))
ORDER BY d.kind COLLATE "C", d.name COLLATE "C", d.id COLLATE "C";
