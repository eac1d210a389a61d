-- name: select_first_version
-- Whether there is any. The least one, for that is in the index: the planner believes that nearly all entries have one,
-- and would look through the table for any other way to ask.
SELECT min(substring(metadata FROM '"message_id":"((?:[^"\\]|\\.)*)"')) AS message_id FROM entries
WHERE thread_id = :thread_id AND substring(metadata FROM '"message_id":"((?:[^"\\]|\\.)*)"') IS NOT NULL;

-- name: select_message_versions
-- The entries that were given other ids than their messages, for these had one already, by the messages' ids. Each id is
-- looked for by itself (OFFSET 0): joined at once, they would be looked for in the whole table.
SELECT e.seq, given.message_id
FROM jsonb_array_elements_text(CAST(:ids AS JSONB)) AS given (message_id)
CROSS JOIN LATERAL (
  SELECT seq, metadata FROM entries
  WHERE thread_id = :thread_id
    AND substring(metadata FROM '"message_id":"((?:[^"\\]|\\.)*)"') IS NOT NULL
    AND substring(metadata FROM '"message_id":"((?:[^"\\]|\\.)*)"') = substring(
      CAST(to_json(given.message_id) AS TEXT) FROM 2 FOR length(CAST(to_json(given.message_id) AS TEXT)) - 2
    )
  OFFSET 0
) AS e
WHERE json_of(e.metadata) ->> 'message_id' = given.message_id;
