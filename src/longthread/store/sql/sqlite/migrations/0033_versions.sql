-- Recall shows one version of a message: others of its id are found by the id that was given to it.
CREATE INDEX entries_by_message ON entries (
    thread_id, CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.message_id') END
) WHERE CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.message_id') END IS NOT NULL;
