-- Recall shows one version of a message: others of its id are found by the id that was given to it, as JSON has it.
CREATE INDEX entries_by_message ON entries (
    thread_id, substring(metadata FROM '"message_id":"((?:[^"\\]|\\.)*)"')
) WHERE substring(metadata FROM '"message_id":"((?:[^"\\]|\\.)*)"') IS NOT NULL;
