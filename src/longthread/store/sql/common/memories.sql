-- name: select_memory
SELECT id, user_id, agent_id, session_id, content, memory_type, importance, expires_at, created_at, said_at,
       -- What a person told by hand is the person's. Else it is what any thread that said it had read, deleted ones too.
       source_deleted_at,
       CASE WHEN coalesce(session_id, CAST(source_deleted_at AS TEXT)) IS NOT NULL THEN coalesce(
           (SELECT s.origin FROM memory_sources s WHERE s.memory_id = memories.id AND s.origin IS NOT NULL
            ORDER BY s.said_at DESC, s.session_id LIMIT 1), origin) END AS origin
FROM memories WHERE id = :id AND user_id = :user_id;

-- name: select_memories_that_begin
SELECT id FROM memories
WHERE user_id = :user_id AND substr(CAST(id AS TEXT), 1, length(CAST(:prefix AS TEXT))) = :prefix
ORDER BY id LIMIT :limit;

-- name: select_memory_that_says
SELECT id, session_id, source_deleted_at, content FROM memories
WHERE user_id = :user_id AND agent_id = :agent_id AND said = :said;

-- name: put_memory_said
UPDATE memories SET said = :said
WHERE id = :id AND NOT EXISTS (
    SELECT 1 FROM memories other
    WHERE other.user_id = memories.user_id AND other.agent_id = memories.agent_id AND other.said = :said
);

-- name: insert_memory_agent
-- Of an agent that the catalog does not know. Always the same row: a store may be copied into another that has it too.
INSERT INTO agents (id, name, system_prompt, config, is_active, created_at, updated_at)
VALUES (UUID[:id], CAST(:id AS TEXT), '', '{}', FALSE, '2026-01-01T00:00:00.000000+00:00', '2026-01-01T00:00:00.000000+00:00')
ON CONFLICT (id) DO NOTHING;

-- name: insert_memory
INSERT INTO memories (id, user_id, agent_id, session_id, content, memory_type, importance, expires_at, created_at, said,
                      said_at, form, words, terms)
VALUES (:id, :user_id, :agent_id, :session_id, :content, coalesce(:memory_type, 'semantic'), coalesce(:importance, 0.5),
        :expires_at, :created_at, :said, :created_at,
        :form, :words, :terms)
ON CONFLICT (user_id, agent_id, said) DO NOTHING;

-- name: update_memory
-- Said in other words, it means something a little else: its vector is made anew.
UPDATE memories
SET session_id = :session_id, source_deleted_at = NULL,
    origin = CASE WHEN CAST(:session_id AS TEXT) IS NOT NULL THEN origin END, memory_type = coalesce(:memory_type, memory_type),
    importance = coalesce(:importance, importance), expires_at = coalesce(:expires_at, expires_at),
    content = :content, said_at = STAMP[:said_at], form = :form, words = :words, terms = :terms,
    model = CASE WHEN content = :content THEN model END,
    numbers = CASE WHEN content = :content THEN numbers END,
    embedding = CASE WHEN content = :content THEN embedding END
WHERE id = :id;

-- name: edit_memory
UPDATE memories
SET session_id = CASE WHEN content = :content THEN session_id END, memory_type = :memory_type,
    source_deleted_at = CASE WHEN content = :content THEN source_deleted_at END,
    origin = CASE WHEN content = :content THEN origin END,
    importance = :importance, expires_at = :expires_at, content = :content,
    said_at = CASE WHEN content = :content THEN said_at ELSE STAMP[:said_at] END, form = :form, words = :words, terms = :terms,
    model = CASE WHEN content = :content THEN model END,
    numbers = CASE WHEN content = :content THEN numbers END,
    embedding = CASE WHEN content = :content THEN embedding END
WHERE id = :id;

-- name: select_sources_of_memories
SELECT s.memory_id, s.session_id, s.seqs, s.origin FROM memory_sources s JOIN memories m ON m.id = s.memory_id
WHERE CAST(s.memory_id AS TEXT) AMONG_TEXTS[:ids] AND m.user_id = :user_id
ORDER BY s.said_at, s.session_id;

-- name: select_memories_said
SELECT id, user_id, agent_id, session_id, content, memory_type, importance, expires_at, created_at, said_at,
       source_deleted_at,
       CASE WHEN coalesce(session_id, CAST(source_deleted_at AS TEXT)) IS NOT NULL THEN coalesce(
           (SELECT s.origin FROM memory_sources s WHERE s.memory_id = memories.id AND s.origin IS NOT NULL
            ORDER BY s.said_at DESC, s.session_id LIMIT 1), origin) END AS origin
FROM memories
WHERE user_id = :user_id
  AND EXISTS (SELECT 1 FROM memory_sources x WHERE x.memory_id = memories.id AND x.session_id = :thread_id)
ORDER BY importance DESC NULLS LAST, created_at DESC NULLS LAST, id;

-- name: select_memories_used
SELECT id, user_id, agent_id, session_id, content, memory_type, importance, expires_at, created_at, said_at,
       source_deleted_at,
       CASE WHEN coalesce(session_id, CAST(source_deleted_at AS TEXT)) IS NOT NULL THEN coalesce(
           (SELECT s.origin FROM memory_sources s WHERE s.memory_id = memories.id AND s.origin IS NOT NULL
            ORDER BY s.said_at DESC, s.session_id LIMIT 1), origin) END AS origin
FROM memories
WHERE user_id = :user_id
  AND EXISTS (SELECT 1 FROM memory_uses x WHERE x.memory_id = memories.id AND x.session_id = :thread_id)
ORDER BY importance DESC NULLS LAST, created_at DESC NULLS LAST, id;

-- name: delete_memory
DELETE FROM memories WHERE id = :id AND user_id = :user_id;

-- name: join_memory_sources
-- No thread has words of its own for it any more.
UPDATE memory_sources SET content = ''
WHERE memory_id = :memory_id AND (SELECT count(*) FROM memory_sources o WHERE o.memory_id = :memory_id) > 1;

-- name: delete_joint_memories
-- What was made of several threads' words together goes with each of them. What a person entered stays.
DELETE FROM memories
WHERE session_id IS NOT NULL AND user_id = :user_id
  AND id IN (SELECT s.memory_id FROM memory_sources s WHERE s.session_id = :thread_id AND s.content = '')
  AND EXISTS (SELECT 1 FROM threads t WHERE t.id = :thread_id AND t.user_id = :user_id)
  AND (CAST(:memory_id AS TEXT) IS NULL OR CAST(id AS TEXT) = :memory_id);

-- name: rehome_memories
-- What another of the user's threads has said too is that one's, in its words, when this one goes.
UPDATE memories
SET session_id = s.session_id, content = s.content, said_at = STAMP[s.said_at], said = CAST(memories.id AS TEXT), form = NULL, words = NULL,
    terms = NULL, model = NULL, numbers = NULL, embedding = NULL
FROM memory_sources s
WHERE memories.session_id = :thread_id AND s.memory_id = memories.id
  AND s.session_id = (
      SELECT x.session_id FROM memory_sources x
      WHERE x.memory_id = memories.id AND x.session_id <> :thread_id
      ORDER BY x.said_at DESC, x.session_id DESC
      LIMIT 1
  )
  AND EXISTS (SELECT 1 FROM threads t WHERE t.id = :thread_id AND t.user_id = :user_id)
  AND (CAST(:memory_id AS TEXT) IS NULL OR CAST(memories.id AS TEXT) = :memory_id);

-- name: select_memories_of_threads
-- Those that are forgotten with all of these threads: no other one has said them, or has other words for them, and no
-- person has entered them.
SELECT CAST(id AS TEXT) AS id FROM memories
WHERE user_id = :user_id AND session_id IS NOT NULL
  AND (session_id AMONG_TEXTS[:threads]
       OR EXISTS (SELECT 1 FROM memory_sources s WHERE s.memory_id = memories.id AND s.session_id AMONG_TEXTS[:threads]))
  AND (NOT EXISTS (SELECT 1 FROM memory_sources s
                   WHERE s.memory_id = memories.id AND NOT s.session_id AMONG_TEXTS[:threads])
       OR EXISTS (SELECT 1 FROM memory_sources s
                  WHERE s.memory_id = memories.id AND s.session_id AMONG_TEXTS[:threads] AND s.content = ''))
ORDER BY id;

-- name: delete_memories_of_thread
DELETE FROM memories
WHERE session_id = :thread_id AND user_id = :user_id AND EXISTS (SELECT 1 FROM threads t WHERE t.id = :thread_id AND t.user_id = :user_id);

-- name: delete_memory_sources_of_thread
DELETE FROM memory_sources
WHERE session_id = :thread_id AND EXISTS (SELECT 1 FROM threads t WHERE t.id = :thread_id AND t.user_id = :user_id);

-- name: select_sources_of_thread
SELECT CAST(s.memory_id AS TEXT) AS memory_id, s.seqs, t.user_id
FROM memory_sources s JOIN threads t ON t.id = s.session_id
WHERE s.session_id = :thread_id ORDER BY s.memory_id;

-- name: delete_memory_of_thread
DELETE FROM memories WHERE CAST(id AS TEXT) = :memory_id AND session_id = :thread_id;

-- name: delete_memory_source
DELETE FROM memory_sources WHERE CAST(memory_id AS TEXT) = :memory_id AND session_id = :thread_id;

-- name: put_memory_source
INSERT INTO memory_sources (memory_id, session_id, seqs, content, said_at, origin)
VALUES (:memory_id, :thread_id, :seqs,
        CASE WHEN EXISTS (SELECT 1 FROM memory_sources o WHERE o.memory_id = :memory_id AND o.content = '')
             THEN '' ELSE :content END,
        :said_at, :origin)
ON CONFLICT (memory_id, session_id)
DO UPDATE SET seqs = excluded.seqs, content = excluded.content, said_at = excluded.said_at,
              origin = coalesce(excluded.origin, memory_sources.origin);

-- name: select_memory_source
SELECT seqs FROM memory_sources WHERE memory_id = :memory_id AND session_id = :thread_id;

-- name: select_memory_sources
SELECT s.session_id, s.seqs, s.origin FROM memory_sources s JOIN memories m ON m.id = s.memory_id
WHERE s.memory_id = :id AND m.user_id = :user_id
ORDER BY s.said_at, s.session_id;

-- name: select_memory_uses
SELECT u.memory_id, u.how, u.shown FROM memory_uses u
WHERE u.session_id = :thread_id AND u.run_id = :run_id
  AND (CAST(:user_id AS TEXT) IS NULL
       OR EXISTS (SELECT 1 FROM threads t WHERE t.id = :thread_id AND t.user_id = :user_id))
ORDER BY u.how DESC, u.place, u.memory_id;

-- name: select_any_memory
SELECT id FROM memories WHERE user_id = :user_id LIMIT 1;

-- name: select_memories
SELECT id, user_id, agent_id, session_id, content, memory_type, importance, expires_at, created_at, said_at,
       source_deleted_at,
       CASE WHEN coalesce(session_id, CAST(source_deleted_at AS TEXT)) IS NOT NULL THEN coalesce(
           (SELECT s.origin FROM memory_sources s WHERE s.memory_id = memories.id AND s.origin IS NOT NULL
            ORDER BY s.said_at DESC, s.session_id LIMIT 1), origin) END AS origin
FROM memories
WHERE user_id = :user_id AND (CAST(:agent_id AS TEXT) IS NULL OR CAST(agent_id AS TEXT) = :agent_id)
  AND (expires_at IS NULL OR MOMENT[expires_at] > MOMENT[:now])
  AND (CAST(:memory_type AS TEXT) IS NULL OR memory_type = :memory_type)
ORDER BY importance DESC NULLS LAST, created_at DESC NULLS LAST, id
LIMIT :limit;

-- name: select_memory_terms
SELECT id, content, memory_type, importance, created_at, said_at, form, words, terms, model IS NOT NULL AS embedded FROM memories
WHERE user_id = :user_id AND (CAST(:agent_id AS TEXT) IS NULL OR CAST(agent_id AS TEXT) = :agent_id)
  AND (expires_at IS NULL OR MOMENT[expires_at] > MOMENT[:now])
ORDER BY id;

-- name: select_memories_said_otherwise
SELECT id, content FROM memories
WHERE user_id = :user_id AND agent_id = :agent_id AND substr(said, 1, length(CAST(:form AS TEXT))) <> :form
ORDER BY id;

-- name: count_memories
SELECT count(*) AS memories FROM memories
WHERE user_id = :user_id AND agent_id = :agent_id
  AND (expires_at IS NULL OR MOMENT[expires_at] > MOMENT[:now]);

-- name: delete_memory_that_says
DELETE FROM memories
WHERE user_id = :user_id AND agent_id = :agent_id AND said = :said
  AND expires_at IS NOT NULL AND MOMENT[expires_at] <= MOMENT[:now];

-- name: delete_expired_memories
DELETE FROM memories
WHERE expires_at IS NOT NULL AND MOMENT[expires_at] <= MOMENT[:now]
  AND (CAST(:user_id AS TEXT) IS NULL OR user_id = :user_id);

-- name: count_expired_memories
SELECT count(*) AS memories FROM memories
WHERE expires_at IS NOT NULL AND MOMENT[expires_at] <= MOMENT[:now]
  AND (CAST(:user_id AS TEXT) IS NULL OR user_id = :user_id);
