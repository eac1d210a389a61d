-- name: select_first_version
-- Whether there is any.
SELECT min(CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.message_id') END) AS message_id FROM entries
WHERE thread_id = :thread_id
  AND CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.message_id') END IS NOT NULL;

-- name: select_message_versions
-- The entries that were given other ids than their messages, for these had one already, by the messages' ids.
SELECT seq, json_extract(metadata, '$.message_id') AS message_id FROM entries
WHERE thread_id = :thread_id
  AND CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.message_id') END IS NOT NULL
  AND CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.message_id') END
      IN (SELECT value FROM json_each(:ids));
