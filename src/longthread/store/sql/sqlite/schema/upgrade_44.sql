-- From version 44 to version 45: keys of providers.

CREATE TABLE provider_keys (
    user_id  TEXT NOT NULL,
    provider TEXT NOT NULL,
    sealed   BLOB NOT NULL,
    set_at   TEXT NOT NULL,
    PRIMARY KEY (user_id, provider)
) WITHOUT ROWID;
