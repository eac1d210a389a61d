-- name: insert_memory_agent
-- Of an agent that the catalog does not know. Always the same row: a store may be copied into another that has it too.
INSERT INTO agents (id, name, system_prompt, config, is_active, created_at, updated_at)
VALUES (CAST(CAST(:id AS TEXT) AS UUID), CAST(:id AS TEXT), '', '{}', FALSE, '2026-01-01T00:00:00.000000+00:00',
        '2026-01-01T00:00:00.000000+00:00')
ON CONFLICT (id) DO NOTHING;

-- name: select_memories
SELECT id, user_id, agent_id, session_id, content, memory_type, importance, expires_at, created_at,
       (SELECT s.origin FROM memory_sources s
        WHERE s.memory_id = memories.id AND memories.session_id IS NOT NULL AND s.origin IS NOT NULL
        ORDER BY s.said_at DESC, s.session_id LIMIT 1) AS origin
FROM memories
WHERE user_id = :user_id AND (CAST(:agent_id AS TEXT) IS NULL OR CAST(agent_id AS TEXT) = :agent_id)
  AND (expires_at IS NULL OR expires_at > CAST(:now AS TIMESTAMPTZ))
  AND (CAST(:memory_type AS TEXT) IS NULL OR memory_type = :memory_type)
ORDER BY importance DESC NULLS LAST, created_at DESC NULLS LAST, id
LIMIT :limit;

-- name: select_memory_terms
SELECT id, content, memory_type, importance, created_at, form, words, terms, model IS NOT NULL AS embedded FROM memories
WHERE user_id = :user_id AND (CAST(:agent_id AS TEXT) IS NULL OR CAST(agent_id AS TEXT) = :agent_id)
  AND (expires_at IS NULL OR expires_at > CAST(:now AS TIMESTAMPTZ))
ORDER BY id;

-- name: select_memory_that_says
-- Locked: nobody else changes it before this transaction has.
SELECT id, session_id, content FROM memories
WHERE user_id = :user_id AND agent_id = CAST(:agent_id AS UUID) AND said = :said
FOR UPDATE;

-- name: select_memories_said_otherwise
SELECT id, content FROM memories
WHERE user_id = :user_id AND agent_id = CAST(:agent_id AS UUID) AND substr(said, 1, length(CAST(:form AS TEXT))) <> :form
ORDER BY id;

-- name: select_near_memories
SELECT id, vector_send(numbers) AS numbers FROM memories
WHERE user_id = :user_id AND (CAST(:agent_id AS TEXT) IS NULL OR CAST(agent_id AS TEXT) = :agent_id)
  AND model = :model AND vector_dims(numbers) = :dims
  AND (expires_at IS NULL OR expires_at > CAST(:now AS TIMESTAMPTZ))
ORDER BY numbers <=> CAST(:text AS VECTOR), id
LIMIT :limit;

-- name: count_memories
SELECT count(*) AS memories FROM memories
WHERE user_id = :user_id AND agent_id = CAST(:agent_id AS UUID)
  AND (expires_at IS NULL OR expires_at > CAST(:now AS TIMESTAMPTZ));

-- name: select_memories_without_vector
SELECT id, content FROM memories
WHERE user_id = :user_id AND (model IS NULL OR model <> :model)
  AND id > CAST(coalesce(NULLIF(:after, ''), '00000000-0000-0000-0000-000000000000') AS UUID)
ORDER BY id LIMIT :limit;

-- name: put_memory_vector
-- Of the words that were embedded, and no others: they may have changed, or be gone.
UPDATE memories
SET model = :model, numbers = CAST(:text AS VECTOR),
    embedding = CASE WHEN octet_length(CAST(:data AS BYTEA)) = 6144 THEN CAST(:text AS VECTOR)
                     WHEN model IS NULL THEN embedding END
WHERE id = :id AND content = :content;

-- name: delete_memory_that_says
DELETE FROM memories
WHERE user_id = :user_id AND agent_id = CAST(:agent_id AS UUID) AND said = :said
  AND expires_at <= CAST(:now AS TIMESTAMPTZ);

-- name: delete_expired_memories
DELETE FROM memories
WHERE expires_at <= CAST(:now AS TIMESTAMPTZ) AND (CAST(:user_id AS TEXT) IS NULL OR user_id = :user_id);

-- name: count_expired_memories
SELECT count(*) AS memories FROM memories WHERE expires_at <= CAST(:now AS TIMESTAMPTZ);

-- name: put_memory_use
-- Locked: it is either gone already, or its deletion waits, and takes this row along.
INSERT INTO memory_uses (session_id, run_id, memory_id, how, place, shown)
SELECT :thread_id, :run_id, m.id, :how, :place, :shown FROM memories m WHERE m.id = :memory_id
FOR KEY SHARE
ON CONFLICT (session_id, run_id, memory_id) DO NOTHING;
