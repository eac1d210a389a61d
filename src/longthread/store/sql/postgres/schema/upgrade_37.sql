-- From version 37 to version 38: checkpoints are found by their metadata.

CREATE FUNCTION as_jsonb(said TEXT) RETURNS JSONB LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CAST(said AS JSONB);
EXCEPTION WHEN OTHERS THEN
    RETURN '"unreadable"';
END
$$;

CREATE INDEX checkpoints_by_metadata ON checkpoints USING gin (as_jsonb(metadata) jsonb_path_ops) WHERE metadata > ':';
