-- From version 47 to version 48.

-- A status that was set holds until something happens.
ALTER TABLE threads ADD COLUMN status_after TEXT;

-- Vectors that an import brought.
UPDATE memory_vectors SET model = 'imported' WHERE seq IS NULL AND model IS NULL;
