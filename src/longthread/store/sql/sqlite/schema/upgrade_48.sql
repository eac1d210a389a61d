-- From version 48 to version 49: boards.

CREATE TABLE boards (
    id            TEXT PRIMARY KEY NOT NULL,
    user_id       TEXT NOT NULL,
    title         TEXT NOT NULL,
    refresh_every TEXT CHECK (refresh_every IN ('hour', 'day', 'week')),
    refreshed_at  TEXT,
    given         TEXT NOT NULL DEFAULT '{}',
    created_at    TEXT NOT NULL,
    updated_at    TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX boards_of_user ON boards (user_id, created_at);

CREATE TABLE board_cards (
    id         TEXT PRIMARY KEY NOT NULL,
    board_id   TEXT NOT NULL REFERENCES boards (id) ON DELETE CASCADE,
    place      INTEGER NOT NULL,
    title      TEXT NOT NULL,
    question   TEXT NOT NULL,
    asked_in   TEXT REFERENCES threads (id) ON DELETE SET NULL,
    entry_id   TEXT,
    source     TEXT,
    sql        TEXT NOT NULL,
    parameters TEXT NOT NULL,
    look       TEXT NOT NULL,
    result     TEXT NOT NULL,
    read_at    TEXT NOT NULL,
    error      TEXT,
    revision   INTEGER NOT NULL
);
CREATE INDEX board_cards_of_board ON board_cards (board_id, place);
CREATE INDEX board_cards_of_thread ON board_cards (asked_in) WHERE asked_in IS NOT NULL;

CREATE TABLE board_links (
    id         TEXT PRIMARY KEY NOT NULL,
    board_id   TEXT NOT NULL REFERENCES boards (id) ON DELETE CASCADE,
    user_id    TEXT NOT NULL,
    token_hash TEXT NOT NULL,
    shown      TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT
);
CREATE INDEX board_links_of_board ON board_links (board_id);
CREATE UNIQUE INDEX board_links_by_token ON board_links (token_hash);

CREATE TABLE board_link_threads (
    link_id  TEXT NOT NULL REFERENCES board_links (id) ON DELETE CASCADE,
    asked_in TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    PRIMARY KEY (link_id, asked_in)
) WITHOUT ROWID;
CREATE INDEX board_link_threads_of_thread ON board_link_threads (asked_in);
