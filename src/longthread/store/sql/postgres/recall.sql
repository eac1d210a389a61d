-- name: select_message_versions
-- The entries that were given other ids than their messages, for these had one already, by the messages' ids.
SELECT e.seq, given.message_id
FROM jsonb_array_elements_text(CAST(:ids AS JSONB)) AS given (message_id)
JOIN entries e ON e.thread_id = :thread_id
  AND substring(e.metadata FROM '"message_id":"((?:[^"\\]|\\.)*)"') IS NOT NULL
  AND substring(e.metadata FROM '"message_id":"((?:[^"\\]|\\.)*)"') = substring(
    CAST(to_json(given.message_id) AS TEXT) FROM 2 FOR length(CAST(to_json(given.message_id) AS TEXT)) - 2
  )
  AND json_of(e.metadata) ->> 'message_id' = given.message_id;
