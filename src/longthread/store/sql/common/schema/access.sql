-- Who uses a server, and what each may do: added by version 50. Names begin with `access_`: the schema may be shared with an
-- application that has tables of users and groups. Of a password, a session, a key or a link there is only a hash.

-- A person. `name` is normalized (NFKC, case-folded). `budget` is what the person may spend in each `budget_period`.
CREATE TABLE access_users (
    id            TEXT PRIMARY KEY NOT NULL,
    name          TEXT NOT NULL,
    display       TEXT NOT NULL DEFAULT '',
    email         TEXT,
    role          TEXT NOT NULL CHECK (role IN ('admin', 'builder', 'member')),
    status        TEXT NOT NULL CHECK (status IN ('active', 'disabled', 'pending')),
    password      TEXT,
    created_at    TEXT NOT NULL,
    seen_at       TEXT,
    budget        DOUBLE PRECISION,
    budget_unit   TEXT NOT NULL DEFAULT 'tokens' CHECK (budget_unit IN ('tokens', 'money')),
    budget_period TEXT NOT NULL DEFAULT 'month' CHECK (budget_period IN ('day', 'week', 'month'))
) WITHOUT ROWID;
CREATE UNIQUE INDEX access_users_by_name ON access_users (name);

-- Who a person is to an issuer: `subject` of OpenID Connect, or the value of a trusted proxy's header. Never an e-mail alone.
CREATE TABLE access_identities (
    issuer         TEXT NOT NULL,
    subject        TEXT NOT NULL,
    user_id        TEXT NOT NULL REFERENCES access_users (id) ON DELETE CASCADE,
    email          TEXT,
    email_verified BOOLEAN NOT NULL DEFAULT FALSE,
    linked_at      TEXT NOT NULL,
    PRIMARY KEY (issuer, subject)
) WITHOUT ROWID;
CREATE INDEX access_identities_of_user ON access_identities (user_id);

-- A group of people. Those of a login provider (`issuer`) or a proxy are set at each login there, and by nothing else.
CREATE TABLE access_groups (
    id         TEXT PRIMARY KEY NOT NULL,
    name       TEXT NOT NULL,
    origin     TEXT NOT NULL CHECK (origin IN ('local', 'oidc', 'proxy')),
    issuer     TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX access_groups_by_name ON access_groups (name);

CREATE TABLE access_members (
    group_id TEXT NOT NULL REFERENCES access_groups (id) ON DELETE CASCADE,
    user_id  TEXT NOT NULL REFERENCES access_users (id) ON DELETE CASCADE,
    PRIMARY KEY (group_id, user_id)
) WITHOUT ROWID;
CREATE INDEX access_members_of_user ON access_members (user_id);

-- A login. It ends at `expires_at`, which moves on while it is used, and at `ends_at` in any case. `issuer` is the id that
-- the settings give the login provider where it began.
CREATE TABLE access_sessions (
    id_hash    TEXT PRIMARY KEY NOT NULL,
    user_id    TEXT NOT NULL REFERENCES access_users (id) ON DELETE CASCADE,
    made_at    TEXT NOT NULL,
    seen_at    TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    ends_at    TEXT NOT NULL,
    address    TEXT NOT NULL DEFAULT '',
    agent      TEXT NOT NULL DEFAULT '',
    via        TEXT NOT NULL,
    issuer     TEXT
) WITHOUT ROWID;
CREATE INDEX access_sessions_of_user ON access_sessions (user_id);

-- A link that works once: the setup of the first admin, or the invitation or new password of a user.
CREATE TABLE access_links (
    token_hash TEXT PRIMARY KEY NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('setup', 'invitation', 'reset')),
    user_id    TEXT REFERENCES access_users (id) ON DELETE CASCADE,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL
) WITHOUT ROWID;
-- Two servers that start at once print one setup link.
CREATE UNIQUE INDEX access_links_of_setup ON access_links (kind) WHERE kind = 'setup';
CREATE INDEX access_links_of_user ON access_links (user_id) WHERE user_id IS NOT NULL;

-- Random secrets of this store, made when they are first needed: all its servers seal with them what a browser carries
-- through a login.
CREATE TABLE access_secrets (
    name    TEXT PRIMARY KEY NOT NULL,
    secret  TEXT NOT NULL,
    made_at TEXT NOT NULL
) WITHOUT ROWID;

-- An API key of a user. `scopes`, `agents`, `models` and `sources` are JSON lists; NULL: no limit.
CREATE TABLE access_keys (
    id                  TEXT PRIMARY KEY NOT NULL,
    user_id             TEXT NOT NULL REFERENCES access_users (id) ON DELETE CASCADE,
    name                TEXT NOT NULL,
    key_hash            TEXT NOT NULL,
    scopes              TEXT NOT NULL,
    agents              TEXT,
    models              TEXT,
    sources             TEXT,
    expires_at          TEXT,
    budget              DOUBLE PRECISION,
    budget_unit         TEXT NOT NULL DEFAULT 'tokens' CHECK (budget_unit IN ('tokens', 'money')),
    budget_period       TEXT NOT NULL DEFAULT 'month' CHECK (budget_period IN ('day', 'week', 'month')),
    requests_per_minute BIGINT,
    parallel            BIGINT,
    made_at             TEXT NOT NULL,
    seen_at             TEXT,
    revoked_at          TEXT
) WITHOUT ROWID;
CREATE UNIQUE INDEX access_keys_by_hash ON access_keys (key_hash);
CREATE INDEX access_keys_of_user ON access_keys (user_id);

-- Who may use or edit what: `item` is the id of a definition, or the name of a model or of what is configured. `to_id` is a
-- user's or a group's id, or empty for everyone. What everyone may use by default has a row `none` where an administrator has
-- taken that back.
CREATE TABLE access_grants (
    kind       TEXT NOT NULL CHECK (kind IN ('source', 'agent', 'skill', 'tool', 'model', 'upstream', 'route')),
    item       TEXT NOT NULL,
    to_kind    TEXT NOT NULL CHECK (to_kind IN ('user', 'group', 'everyone')),
    to_id      TEXT NOT NULL DEFAULT '',
    may        TEXT NOT NULL CHECK (may IN ('use', 'edit', 'none')),
    granted_by TEXT NOT NULL,
    granted_at TEXT NOT NULL,
    PRIMARY KEY (kind, item, to_kind, to_id)
) WITHOUT ROWID;
CREATE INDEX access_grants_to ON access_grants (to_kind, to_id);

-- What users spent in a day (UTC): one row for each key, agent and model. `unpriced` counts the
-- tokens of a model that has no price: `cost` is without them.
CREATE TABLE access_spending (
    user_id    TEXT NOT NULL,
    day        TEXT NOT NULL,
    key_id     TEXT NOT NULL DEFAULT '',
    agent      TEXT NOT NULL DEFAULT '',
    model      TEXT NOT NULL,
    requests   BIGINT NOT NULL DEFAULT 0,
    tokens_in  BIGINT NOT NULL DEFAULT 0,
    tokens_out BIGINT NOT NULL DEFAULT 0,
    cost       DOUBLE PRECISION NOT NULL DEFAULT 0,
    unpriced   BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (user_id, day, key_id, agent, model)
) WITHOUT ROWID;
CREATE INDEX access_spending_of_key ON access_spending (key_id, day) WHERE key_id <> '';
CREATE INDEX access_spending_of_day ON access_spending (day);

-- Wrong passwords in a row, by account and by address. All servers wait until `until_at`.
CREATE TABLE access_tries (
    kind     TEXT NOT NULL CHECK (kind IN ('account', 'address')),
    subject  TEXT NOT NULL,
    failures BIGINT NOT NULL,
    until_at TEXT NOT NULL,
    PRIMARY KEY (kind, subject)
) WITHOUT ROWID;

-- What people did about access: no contents. `actor` is a user's id, or a pseudonym once the user is forgotten.
CREATE TABLE access_audit (
    id         TEXT PRIMARY KEY NOT NULL,
    at         TEXT NOT NULL,
    actor      TEXT NOT NULL,
    on_behalf  TEXT,
    via        TEXT NOT NULL,
    address    TEXT NOT NULL DEFAULT '',
    action     TEXT NOT NULL,
    object     TEXT NOT NULL DEFAULT '',
    outcome    TEXT NOT NULL DEFAULT 'done',
    request_id TEXT NOT NULL DEFAULT '',
    detail     TEXT NOT NULL DEFAULT '{}'
) WITHOUT ROWID;
CREATE INDEX access_audit_of_actor ON access_audit (actor, at);

-- A file that a user uploaded.
CREATE TABLE access_uploads (
    id      TEXT PRIMARY KEY NOT NULL,
    user_id TEXT NOT NULL,
    name    TEXT NOT NULL,
    bytes   BIGINT NOT NULL,
    made_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX access_uploads_of_user ON access_uploads (user_id);

-- A project: conversations that its members share. The conversations and memories in it have the `user_id` `project:` and
-- its id, so that what keeps users apart keeps projects apart.
CREATE TABLE access_projects (
    id           TEXT PRIMARY KEY NOT NULL,
    name         TEXT NOT NULL,
    instructions TEXT NOT NULL DEFAULT '',
    sources      TEXT NOT NULL DEFAULT '[]',
    created_by   TEXT NOT NULL,
    created_at   TEXT NOT NULL,
    updated_at   TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE access_project_members (
    project_id TEXT NOT NULL REFERENCES access_projects (id) ON DELETE CASCADE,
    user_id    TEXT NOT NULL,
    may        TEXT NOT NULL CHECK (may IN ('use', 'manage')),
    added_at   TEXT NOT NULL,
    PRIMARY KEY (project_id, user_id)
) WITHOUT ROWID;
CREATE INDEX access_project_members_of_user ON access_project_members (user_id);
