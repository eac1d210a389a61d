-- name: select_memories
SELECT id, user_id, agent_id, session_id, content, memory_type, importance, expires_at, created_at,
       (SELECT s.origin FROM memory_sources s
        WHERE s.memory_id = memories.id AND memories.session_id IS NOT NULL AND s.origin IS NOT NULL
        ORDER BY s.said_at DESC, s.session_id LIMIT 1) AS origin
FROM memories
WHERE user_id = :user_id AND (CAST(:agent_id AS TEXT) IS NULL OR agent_id = :agent_id)
  AND (expires_at IS NULL OR julianday(expires_at) > julianday(:now))
  AND (CAST(:memory_type AS TEXT) IS NULL OR memory_type = :memory_type)
ORDER BY importance DESC, created_at DESC, id
LIMIT :limit;

-- name: select_memory_terms
SELECT id, content, memory_type, importance, created_at, form, words, terms, model IS NOT NULL AS embedded FROM memories
WHERE user_id = :user_id AND (CAST(:agent_id AS TEXT) IS NULL OR agent_id = :agent_id)
  AND (expires_at IS NULL OR julianday(expires_at) > julianday(:now))
ORDER BY id;

-- name: select_memories_said_otherwise
SELECT id, content FROM memories
WHERE user_id = :user_id AND agent_id = :agent_id AND substr(said, 1, length(CAST(:form AS TEXT))) <> :form
ORDER BY id;

-- name: select_near_memories
SELECT id, numbers FROM memories
WHERE user_id = :user_id AND (CAST(:agent_id AS TEXT) IS NULL OR agent_id = :agent_id)
  AND model = :model AND length(numbers) = 4 * :dims
  AND (expires_at IS NULL OR julianday(expires_at) > julianday(:now));

-- name: count_memories
SELECT count(*) AS memories FROM memories
WHERE user_id = :user_id AND agent_id = :agent_id
  AND (expires_at IS NULL OR julianday(expires_at) > julianday(:now));

-- name: select_memories_without_vector
SELECT id, content FROM memories
WHERE user_id = :user_id AND (model IS NULL OR model <> :model) AND id > :after
ORDER BY id LIMIT :limit;

-- name: put_memory_vector
-- Of the words that were embedded, and no others: they may have changed, or be gone.
UPDATE memories
SET model = :model, numbers = :data,
    embedding = CASE WHEN length(:data) = 6144 THEN :data WHEN model IS NULL THEN embedding END
WHERE id = :id AND content = :content;

-- name: delete_memory_that_says
DELETE FROM memories
WHERE user_id = :user_id AND agent_id = :agent_id AND said = :said
  AND expires_at IS NOT NULL AND julianday(expires_at) <= julianday(:now);

-- name: delete_expired_memories
DELETE FROM memories
WHERE expires_at IS NOT NULL AND julianday(expires_at) <= julianday(:now)
  AND (CAST(:user_id AS TEXT) IS NULL OR user_id = :user_id);

-- name: count_expired_memories
SELECT count(*) AS memories FROM memories WHERE expires_at IS NOT NULL AND julianday(expires_at) <= julianday(:now);

-- name: put_memory_use
INSERT INTO memory_uses (session_id, run_id, memory_id, how, place, shown)
SELECT :thread_id, :run_id, m.id, :how, :place, :shown FROM memories m WHERE m.id = :memory_id
ON CONFLICT (session_id, run_id, memory_id) DO NOTHING;
