-- What people have taught of a source: business terms `[{"name","meaning","sql","synonyms"}]`, examples `[{"question","sql"}]`.
ALTER TABLE sources ADD COLUMN terms JSONB DEFAULT '[]';
ALTER TABLE sources ADD COLUMN examples JSONB DEFAULT '[]';
