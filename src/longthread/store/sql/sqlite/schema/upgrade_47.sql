-- From version 47 to version 48.

-- A status that was set holds until something happens.
ALTER TABLE threads ADD COLUMN status_after TEXT;

-- Vectors that an import brought.
UPDATE memory_vectors SET model = 'imported' WHERE seq IS NULL AND model IS NULL;

-- A worker counts its renewals; no clock tells whether it lives.
DROP VIEW IF EXISTS living_workers;
ALTER TABLE workers RENAME COLUMN renewed_at TO renewals;
