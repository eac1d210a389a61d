-- What applications keep beside their conversations: values by namespace and key, as LangGraph's stores have them.

-- `namespace` has its parts joined by dots. `fields` says what of the value is found by a question: JSON, a list of
-- paths, false for nothing, null for what the store is configured to. `form` is that of its terms, and `embedded` the
-- name of the index that its vectors were made for, both to be told from what is wanted by now.
CREATE TABLE items (
    user_id     TEXT NOT NULL,
    namespace   TEXT NOT NULL,
    key         TEXT NOT NULL,
    value       TEXT NOT NULL,
    created_at  TEXT NOT NULL,
    updated_at  TEXT NOT NULL,
    expires_at  TEXT,
    ttl_minutes REAL,
    fields      TEXT NOT NULL,
    form        INTEGER NOT NULL,
    words       INTEGER NOT NULL,
    embedded    TEXT NOT NULL,
    PRIMARY KEY (user_id, namespace, key)
);
CREATE INDEX items_newest ON items (user_id, updated_at);
CREATE INDEX items_expiring ON items (user_id, expires_at) WHERE expires_at IS NOT NULL;

-- How often an item says a term, which is kept as a hash.
CREATE TABLE item_terms (
    user_id   TEXT NOT NULL,
    term      INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    key       TEXT NOT NULL,
    count     INTEGER NOT NULL,
    PRIMARY KEY (user_id, term, namespace, key),
    FOREIGN KEY (user_id, namespace, key) REFERENCES items (user_id, namespace, key) ON DELETE CASCADE
);
CREATE INDEX item_terms_of_items ON item_terms (user_id, namespace, key);

-- A vector of a text of an item's value: its numbers with 32 bits each, the lowest byte first.
CREATE TABLE item_vectors (
    user_id   TEXT NOT NULL,
    namespace TEXT NOT NULL,
    key       TEXT NOT NULL,
    field     TEXT NOT NULL,
    embedding BLOB NOT NULL,
    PRIMARY KEY (user_id, namespace, key, field),
    FOREIGN KEY (user_id, namespace, key) REFERENCES items (user_id, namespace, key) ON DELETE CASCADE
);
