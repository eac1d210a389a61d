-- name: prune_prompts
-- Those that are not among the :kept.
DELETE FROM prompts WHERE thread_id = :thread_id AND id NOT IN (SELECT jsonb_array_elements_text(CAST(:kept AS JSONB)));
