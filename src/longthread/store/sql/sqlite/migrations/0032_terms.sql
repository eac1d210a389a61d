-- What people have taught of a source: business terms `[{"name","meaning","sql","synonyms"}]`, examples `[{"question","sql"}]`.
ALTER TABLE sources ADD COLUMN terms TEXT DEFAULT '[]' CHECK (json_valid(terms));
ALTER TABLE sources ADD COLUMN examples TEXT DEFAULT '[]' CHECK (json_valid(examples));
