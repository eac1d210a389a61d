-- The context windows that endpoints have said their models have, where that is less than was assumed of them (`assumed`,
-- in tokens): by a setting, a model's profile, or in general. Another assumption is tried anew.
CREATE TABLE context_windows (
    model      TEXT COLLATE "C" NOT NULL,
    endpoint   TEXT COLLATE "C" NOT NULL,
    assumed    BIGINT NOT NULL,
    tokens     BIGINT NOT NULL,
    learned_at TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (model, endpoint, assumed)
);
