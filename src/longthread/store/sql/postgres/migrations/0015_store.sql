-- What applications keep beside their conversations: values by namespace and key, as LangGraph's stores have them.

-- `namespace` has its parts joined by dots. `fields` says what of the value is found by a question: JSON, a list of
-- paths, false for nothing, null for what the store is configured to. `form` is that of its terms, and `embedded` the
-- name of the index that its vectors were made for, both to be told from what is wanted by now.
CREATE TABLE items (
    user_id     TEXT COLLATE "C" NOT NULL,
    namespace   TEXT COLLATE "C" NOT NULL,
    key         TEXT COLLATE "C" NOT NULL,
    value       TEXT COLLATE "C" NOT NULL,
    created_at  TEXT COLLATE "C" NOT NULL,
    updated_at  TEXT COLLATE "C" NOT NULL,
    expires_at  TEXT COLLATE "C",
    ttl_minutes DOUBLE PRECISION,
    fields      TEXT COLLATE "C" NOT NULL,
    form        BIGINT NOT NULL,
    words       BIGINT NOT NULL,
    embedded    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, namespace, key)
);
CREATE INDEX items_newest ON items (user_id, updated_at);
CREATE INDEX items_expiring ON items (user_id, expires_at) WHERE expires_at IS NOT NULL;

-- How often an item says a term, which is kept as a hash.
CREATE TABLE item_terms (
    user_id   TEXT COLLATE "C" NOT NULL,
    term      BIGINT NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    key       TEXT COLLATE "C" NOT NULL,
    count     BIGINT NOT NULL,
    PRIMARY KEY (user_id, term, namespace, key),
    FOREIGN KEY (user_id, namespace, key) REFERENCES items (user_id, namespace, key) ON DELETE CASCADE
);
CREATE INDEX item_terms_of_items ON item_terms (user_id, namespace, key);

-- A vector of a text of an item's value, of whatever number of dimensions.
CREATE TABLE item_vectors (
    user_id   TEXT COLLATE "C" NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    key       TEXT COLLATE "C" NOT NULL,
    field     TEXT COLLATE "C" NOT NULL,
    embedding VECTOR NOT NULL,
    PRIMARY KEY (user_id, namespace, key, field),
    FOREIGN KEY (user_id, namespace, key) REFERENCES items (user_id, namespace, key) ON DELETE CASCADE
);
