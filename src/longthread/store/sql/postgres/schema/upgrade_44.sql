-- From version 44 to version 45: keys of providers.

CREATE TABLE provider_keys (
    user_id  TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    sealed   BYTEA NOT NULL,
    set_at   TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, provider)
);
