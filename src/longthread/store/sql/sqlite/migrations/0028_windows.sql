-- The context windows that endpoints have said their models have, where that is less than was assumed of them (`assumed`,
-- in tokens): by a setting, a model's profile, or in general. Another assumption is tried anew.
CREATE TABLE context_windows (
    model      TEXT NOT NULL,
    endpoint   TEXT NOT NULL,
    assumed    INTEGER NOT NULL,
    tokens     INTEGER NOT NULL,
    learned_at TEXT NOT NULL,
    PRIMARY KEY (model, endpoint, assumed)
);
