-- name: delete_agent
DELETE FROM agents WHERE id = :id;

-- name: delete_skill
DELETE FROM skills WHERE id = :id;

-- name: delete_tool
DELETE FROM tools WHERE id = :id;

-- name: delete_source
DELETE FROM sources WHERE id = :id;

-- name: delete_upstream
DELETE FROM upstreams WHERE id = :id;

-- name: delete_route
DELETE FROM routes WHERE id = :id;

-- name: select_source_ids
SELECT CAST(id AS TEXT) AS id FROM sources;

-- name: insert_version
INSERT INTO catalog_versions (kind, item_id, version, name, body, made_at, made_by)
VALUES (:kind, :id, :version, :name, :body, :at, :by);

-- name: select_versions
SELECT kind, item_id, version, name, body, made_at, made_by FROM catalog_versions
WHERE kind = :kind AND item_id = :id ORDER BY version;

-- name: select_version
SELECT kind, item_id, version, name, body, made_at, made_by FROM catalog_versions
WHERE kind = :kind AND item_id = :id AND version = :version;

-- name: select_deleted
-- Of the definitions that were deleted the last version, which says so.
SELECT v.kind, v.item_id, v.version, v.name, v.body, v.made_at, v.made_by FROM catalog_versions v
WHERE v.body IS NULL
  AND v.version = (SELECT max(x.version) FROM catalog_versions x WHERE x.kind = v.kind AND x.item_id = v.item_id)
ORDER BY v.made_at, v.item_id;

-- name: forget_maker
UPDATE catalog_versions SET made_by = NULL WHERE made_by = :user_id;

-- name: count_belongings
-- What goes with an agent.
SELECT (SELECT count(*) FROM threads WHERE agent_id = CAST(:id AS TEXT)) AS threads,
       (SELECT count(*) FROM memories WHERE agent_id = UUID[:id]) AS memories;

-- name: count_others_belongings
-- What goes with an agent, and is not of the user.
SELECT (SELECT count(*) FROM threads WHERE agent_id = CAST(:id AS TEXT) AND user_id <> :user_id) AS threads,
       (SELECT count(*) FROM memories WHERE agent_id = UUID[:id] AND user_id <> :user_id) AS memories;

-- name: set_agent
UPDATE threads SET agent_id = :agent_id WHERE id = :id;

-- name: put_agent
INSERT INTO agents (id, name, description, system_prompt, config, skills, sub_agents, is_active, created_at, updated_at)
VALUES (:id, :name, :description, :system_prompt, JSON[:config],
        TEXTS[:skills],
        TEXTS[:sub_agents],
        FLAG[:is_active], STAMP[:now], STAMP[:now])
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, description = excluded.description, system_prompt = excluded.system_prompt,
    config = excluded.config, skills = excluded.skills, sub_agents = excluded.sub_agents, is_active = excluded.is_active;

-- name: put_skill
INSERT INTO skills (id, name, description, trigger_keywords, tools, config, is_builtin, created_at, updated_at)
VALUES (:id, :name, :description, TEXTS[:trigger_keywords],
        JSON[:tools], JSON[:config], FALSE, STAMP[:now], STAMP[:now])
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, description = excluded.description, trigger_keywords = excluded.trigger_keywords,
    tools = excluded.tools, config = excluded.config;

-- name: put_tool
INSERT INTO tools (id, name, type, description, schema, implementation, is_active, created_at, updated_at)
VALUES (:id, :name, :type, :description, JSON[:schema], JSON[:implementation],
        FLAG[:is_active], STAMP[:now], STAMP[:now])
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, type = excluded.type, description = excluded.description, schema = excluded.schema,
    implementation = excluded.implementation, is_active = excluded.is_active;

-- name: put_source
INSERT INTO sources (id, name, description, address, is_active, terms, examples, semantics, created_at, updated_at)
VALUES (:id, :name, :description, :address, FLAG[:is_active], JSON[:terms],
        JSON[:examples], JSON[:semantics], STAMP[:now], STAMP[:now])
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, description = excluded.description, address = excluded.address, is_active = excluded.is_active,
    terms = excluded.terms, examples = excluded.examples, semantics = excluded.semantics;

-- name: put_upstream
INSERT INTO upstreams (id, name, description, base_url, dialects, api_key, holds_state, is_active, created_at, updated_at)
VALUES (:id, :name, :description, :base_url, JSON[:dialects], :api_key, FLAG[:holds_state], FLAG[:is_active], STAMP[:now],
        STAMP[:now])
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, description = excluded.description, base_url = excluded.base_url, dialects = excluded.dialects,
    api_key = excluded.api_key, holds_state = excluded.holds_state, is_active = excluded.is_active,
    updated_at = excluded.updated_at;

-- name: put_route
INSERT INTO routes (id, name, description, models, upstream, model, is_active, created_at, updated_at)
VALUES (:id, :name, :description, :models, :upstream, :model, FLAG[:is_active], STAMP[:now], STAMP[:now])
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, description = excluded.description, models = excluded.models, upstream = excluded.upstream,
    model = excluded.model, is_active = excluded.is_active, updated_at = excluded.updated_at;

-- name: select_upstreams
SELECT CAST(id AS TEXT) AS id, name, base_url, CAST(dialects AS TEXT) AS dialects, api_key, holds_state FROM upstreams WHERE is_active
ORDER BY name;

-- name: select_routes
SELECT CAST(id AS TEXT) AS id, name, models, upstream, model FROM routes WHERE is_active ORDER BY name;

-- name: put_builtin_agent
INSERT INTO agents (id, name, description, system_prompt, config, skills, sub_agents, is_active, created_at, updated_at)
VALUES (:id, :name, :description, :system_prompt, JSON[:config],
        TEXTS[:skills],
        TEXTS[:sub_agents],
        FLAG[:is_active], STAMP[:at], STAMP[:at])
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, description = excluded.description, system_prompt = excluded.system_prompt,
    config = excluded.config, skills = excluded.skills, sub_agents = excluded.sub_agents, is_active = excluded.is_active,
    created_at = excluded.created_at, updated_at = excluded.updated_at;

-- name: put_builtin_skill
-- Unless another program has a skill of this name, which stays.
INSERT INTO skills (id, name, description, trigger_keywords, tools, config, is_builtin, created_at, updated_at)
SELECT UUID[:id], CAST(:name AS TEXT), :description, TEXTS[:trigger_keywords],
       JSON[:tools], JSON[:config], TRUE, STAMP[:at], STAMP[:at]
WHERE NOT EXISTS (SELECT 1 FROM skills WHERE name = CAST(:name AS TEXT) AND id <> UUID[:id])
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, description = excluded.description, trigger_keywords = excluded.trigger_keywords,
    tools = excluded.tools, config = excluded.config, is_builtin = excluded.is_builtin,
    created_at = excluded.created_at, updated_at = excluded.updated_at;
