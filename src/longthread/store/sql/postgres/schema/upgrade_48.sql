-- From version 48 to version 49: boards.

CREATE TABLE boards (
    id            TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    user_id       TEXT COLLATE "C" NOT NULL,
    title         TEXT COLLATE "C" NOT NULL,
    refresh_every TEXT COLLATE "C" CHECK (refresh_every IN ('hour', 'day', 'week')),
    refreshed_at  TEXT COLLATE "C",
    given         TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    created_at    TEXT COLLATE "C" NOT NULL,
    updated_at    TEXT COLLATE "C" NOT NULL
);
CREATE INDEX boards_of_user ON boards (user_id, created_at);

CREATE TABLE board_cards (
    id         TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    board_id   TEXT COLLATE "C" NOT NULL REFERENCES boards (id) ON DELETE CASCADE,
    place      BIGINT NOT NULL,
    title      TEXT COLLATE "C" NOT NULL,
    question   TEXT COLLATE "C" NOT NULL,
    asked_in   TEXT COLLATE "C" REFERENCES threads (id) ON DELETE SET NULL,
    entry_id   TEXT COLLATE "C",
    source     TEXT COLLATE "C",
    sql        TEXT COLLATE "C" NOT NULL,
    parameters TEXT COLLATE "C" NOT NULL,
    look       TEXT COLLATE "C" NOT NULL,
    result     TEXT COLLATE "C" NOT NULL,
    read_at    TEXT COLLATE "C" NOT NULL,
    error      TEXT COLLATE "C",
    revision   BIGINT NOT NULL
);
CREATE INDEX board_cards_of_board ON board_cards (board_id, place);
CREATE INDEX board_cards_of_thread ON board_cards (asked_in) WHERE asked_in IS NOT NULL;

CREATE TABLE board_links (
    id         TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    board_id   TEXT COLLATE "C" NOT NULL REFERENCES boards (id) ON DELETE CASCADE,
    user_id    TEXT COLLATE "C" NOT NULL,
    token_hash TEXT COLLATE "C" NOT NULL,
    shown      TEXT COLLATE "C" NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    expires_at TEXT COLLATE "C"
);
CREATE INDEX board_links_of_board ON board_links (board_id);
CREATE UNIQUE INDEX board_links_by_token ON board_links (token_hash);

CREATE TABLE board_link_threads (
    link_id  TEXT COLLATE "C" NOT NULL REFERENCES board_links (id) ON DELETE CASCADE,
    asked_in TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    PRIMARY KEY (link_id, asked_in)
);
CREATE INDEX board_link_threads_of_thread ON board_link_threads (asked_in);
