-- The tables, as a new store gets them, in PostgreSQL's types: `longthread.store.schema` puts SQLite's in their place, and has
-- PostgreSQL order text by its bytes, as SQLite does. JSON of Longthread's own tables is text; a time of theirs is text in
-- UTC, as `2026-01-31T12:00:00.000000+00:00`.

-- A conversation. The first columns are those of document 000, the others those of document 002.
CREATE TABLE threads (
    id               TEXT PRIMARY KEY,
    user_id          TEXT NOT NULL DEFAULT 'default',
    title            TEXT,
    source           TEXT,
    tip              BIGINT NOT NULL DEFAULT 0,
    entry_count      BIGINT NOT NULL DEFAULT 0,
    tool_categories  TEXT NOT NULL DEFAULT '[]',
    tags             TEXT NOT NULL DEFAULT '[]',
    created_at       TEXT NOT NULL,
    updated_at       TEXT NOT NULL,
    agent_id         TEXT,
    status           TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused', 'completed', 'failed')),
    metadata         TEXT NOT NULL DEFAULT '{}',
    ended_at         TEXT,
    expires_at       TEXT,
    -- Retention deleted the entries before this one. An entry whose parent is gone begins its branch.
    first_seq        BIGINT NOT NULL DEFAULT 1,
    -- Document 003 numbers its conversations. The number belongs to this database: an import does not keep it.
    number           BIGINT,
    -- A thread that is deleted and imported again looks as old as before. Each row gets its own mark, which no copy takes
    -- along, so that a process does not mistake one for the other.
    incarnation      TEXT,
    -- The conversation of the agent that called this one. Not a foreign key: either may be copied without the other.
    parent_thread_id TEXT,
    -- Since when lists leave it out.
    archived_at      TEXT,
    -- The last run and how it stood when `status` was set: it holds until the run stands otherwise, or another one comes.
    status_after     TEXT
) WITHOUT ROWID;

CREATE UNIQUE INDEX threads_by_number ON threads (number);
CREATE INDEX threads_of_user ON threads (user_id, updated_at DESC);
CREATE INDEX threads_of_parent ON threads (parent_thread_id) WHERE parent_thread_id IS NOT NULL;
CREATE INDEX idx_sessions_agent ON threads (agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX idx_sessions_status ON threads (status) WHERE status <> 'active';
CREATE INDEX idx_conversation_state_expires ON threads (expires_at) WHERE expires_at IS NOT NULL;

-- A thread that is deleted soon, unless that is undone, or one below it (`root` is the one that was asked for). Until then the
-- thread is nobody's: `threads.user_id` is a name that no user has, and this table has its user. A background job ends it.
CREATE TABLE pending_deletions (
    thread_id TEXT PRIMARY KEY NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    root      TEXT NOT NULL,
    user_id   TEXT NOT NULL,
    -- What was remembered from the thread is forgotten with it.
    with_memories BOOLEAN NOT NULL DEFAULT FALSE
) WITHOUT ROWID;
CREATE INDEX pending_deletions_below ON pending_deletions (root);
CREATE INDEX pending_deletions_of_user ON pending_deletions (user_id);

-- A message. A thread is a tree: `parent_seq` is the entry before this one on its branch, 0 for a first one.
-- `replaces` is the entry whose place a later version of a message takes: a branch shows the newest version on it in that
-- place, and nothing in the version's own. It is always the first version's `seq`, which is before this one on its branch.
-- Nothing updates an entry, and only retention, the deletion of its thread and forgetting it delete it: then what followed
-- it follows the entry before.
CREATE TABLE entries (
    thread_id    TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seq          BIGINT NOT NULL,
    parent_seq   BIGINT NOT NULL,
    id           TEXT NOT NULL,
    role         TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
    text         TEXT NOT NULL,
    tool_calls   TEXT,
    tool_call_id TEXT,
    name         TEXT,
    payload      BYTEA,
    tokens       BIGINT,
    latency_ms   BIGINT,
    run_id       TEXT,
    metadata     TEXT,
    created_at   TEXT NOT NULL,
    replaces     BIGINT,
    PRIMARY KEY (thread_id, seq)
);

-- Where branches begin: all other entries follow the one that was written before them.
CREATE INDEX entries_apart ON entries (thread_id, seq) WHERE parent_seq <> seq - 1;
CREATE INDEX entries_replacing ON entries (thread_id, replaces, seq) WHERE replaces IS NOT NULL;

-- Where a branch ended when the conversation went on elsewhere: `seq` is its first entry. Whoever comes back to it finds
-- all that they had chosen on it.
CREATE TABLE branch_tips (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seq       BIGINT NOT NULL,
    tip       BIGINT NOT NULL,
    PRIMARY KEY (thread_id, seq)
) WITHOUT ROWID;

-- What people note about a message, as a JSON object. The entry itself does not change.
CREATE TABLE message_metadata (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seq       BIGINT NOT NULL,
    data      TEXT NOT NULL,
    PRIMARY KEY (thread_id, seq)
) WITHOUT ROWID;

-- What the entries up to `seq` taught about the thread's source. It can be computed again. `queries` is the number of the
-- last query label; it is apart because it changes with every query.
CREATE TABLE folds (
    thread_id TEXT PRIMARY KEY REFERENCES threads (id) ON DELETE CASCADE,
    seq       BIGINT NOT NULL,
    data      TEXT NOT NULL,
    queries   BIGINT NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- A run of an agent. What it did is stored once: questions, replies and results are entries, and runs and steps refer to
-- them. An event that says what a run or a step says is a mark on it, in `told`: `[[number, type, microseconds], …]`.
CREATE TABLE runs (
    thread_id      TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    id             TEXT NOT NULL,
    status         TEXT NOT NULL CHECK (status IN ('running', 'finished', 'paused', 'failed')),
    question       TEXT NOT NULL,
    source         TEXT,
    model          TEXT NOT NULL,
    protocol       TEXT NOT NULL,
    max_steps      BIGINT NOT NULL,
    continues      TEXT,
    first_step     BIGINT NOT NULL,
    owner          TEXT,
    outcome        TEXT NOT NULL DEFAULT '{}',
    started_at     TEXT NOT NULL,
    ended_at       TEXT,
    -- The entry of the question, and the entry that the run ended with: its text is the outcome's answer or summary.
    question_seq   BIGINT,
    entry_seq      BIGINT,
    told           TEXT NOT NULL DEFAULT '[]',
    last_event     BIGINT NOT NULL DEFAULT 0,
    -- NULL while the run may make more steps: the index after its last step, the prompts that its steps name, and its
    -- outcome, steps and events, compressed.
    stop_step      BIGINT,
    prompts        TEXT,
    body           BYTEA,
    -- The agent and its version, NULL for the analyst, and the versions of its parts: `{"skill":{id:version},…}`.
    agent_id       TEXT,
    agent_version  BIGINT,
    agent_parts    TEXT,
    -- Since when the run waits for a person's decisions. No process executes it meanwhile.
    waiting_since  TEXT,
    -- The run of the parent thread, and the call in it, that this run answers.
    parent_run_id  TEXT,
    parent_call_id TEXT,
    -- Executions of the run are counted, and each writes only while it is the last one: `owner` is its worker. If that one
    -- dies, another worker claims the run, unless a person is to resume it, as one of an older version or another store.
    attempt        BIGINT NOT NULL DEFAULT 0,
    claimable      BOOLEAN NOT NULL DEFAULT FALSE,
    -- Executions in a row that died without a finished step, and how many steps were finished when the last one began;
    -- -1 while it was claimed and has not begun.
    crashes        BIGINT NOT NULL DEFAULT 0,
    steps_before   BIGINT NOT NULL DEFAULT 0,
    -- The user who stopped the run; its worker, or the next one, obeys.
    stop_by        TEXT,
    -- Who asked, and with which API key. NULL where nobody logs in, and on the command line: such a run may use all.
    asker          TEXT,
    key_id         TEXT,
    PRIMARY KEY (thread_id, id)
) WITHOUT ROWID;

-- One writer a thread: at most one of its runs is live.
CREATE UNIQUE INDEX live_run ON runs (thread_id) WHERE status = 'running';
CREATE INDEX runs_to_execute ON runs (owner) WHERE status = 'running' AND waiting_since IS NULL;

-- A process that executes runs, until it ends. It counts its renewals. Who sees the number stand still by a clock of its own
-- deletes the row: whoever has none is dead. No two clocks are compared, and none of the wall.
CREATE TABLE workers (
    id         TEXT PRIMARY KEY NOT NULL,
    started_at TEXT NOT NULL,
    renewals   BIGINT NOT NULL
) WITHOUT ROWID;

-- Background work that a worker does, or that waits for one: a dead worker left it, or it failed. It is deleted when it is
-- done. `subject` is a thread's id, a user's, or empty for the whole store. Nobody claims it before `due_at`, in
-- milliseconds since 1970.
CREATE TABLE background_jobs (
    kind      TEXT NOT NULL,
    subject   TEXT NOT NULL,
    thread_id TEXT REFERENCES threads (id) ON DELETE CASCADE,
    owner     TEXT,
    failures  BIGINT NOT NULL,
    due_at    BIGINT NOT NULL,
    PRIMARY KEY (kind, subject)
) WITHOUT ROWID;
CREATE INDEX background_jobs_of_thread ON background_jobs (thread_id) WHERE thread_id IS NOT NULL;

-- A question that waits for the end of its thread's run, or for room. When it is its turn, it becomes an entry with its id, and
-- a run. `place` is the order in the thread.
CREATE TABLE queued_questions (
    thread_id     TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    id            TEXT NOT NULL,
    place         BIGINT NOT NULL,
    question      TEXT NOT NULL,
    source        TEXT,
    fingerprint   TEXT,
    model         TEXT NOT NULL,
    protocol      TEXT NOT NULL,
    max_steps     BIGINT NOT NULL,
    agent_id      TEXT,
    agent_version BIGINT,
    agent_parts   TEXT,
    -- The run that the question replaces, if that is still the thread's last one: it follows what was before.
    rolls_back    TEXT,
    queued_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    -- As in `runs`.
    asker         TEXT,
    key_id        TEXT,
    PRIMARY KEY (thread_id, id)
) WITHOUT ROWID;

-- A user's question that a client may send again under the same key, without asking twice. It is known for a day.
CREATE TABLE idempotency_keys (
    user_id    TEXT NOT NULL,
    key        TEXT NOT NULL,
    -- A hash of the request: a key stands for one.
    request    TEXT NOT NULL,
    thread_id  TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    run_id     TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (user_id, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_keys_of_thread ON idempotency_keys (thread_id);

-- A link by which anybody may read a thread's branch up to entry `tip`. Of its token there is only a hash.
CREATE TABLE share_links (
    thread_id  TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    id         TEXT NOT NULL,
    token_hash TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    tip        BIGINT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    run_id     TEXT,
    PRIMARY KEY (thread_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX share_links_by_token ON share_links (token_hash);

-- A user's key of a provider, sealed under a key that is not in this database.
CREATE TABLE provider_keys (
    user_id  TEXT NOT NULL,
    provider TEXT NOT NULL,
    sealed   BYTEA NOT NULL,
    set_at   TEXT NOT NULL,
    PRIMARY KEY (user_id, provider)
) WITHOUT ROWID;

-- A user's board. `given` are the values of its cards' parameters, as a JSON object by name. `refreshed_at` is when its
-- schedule was set, or last carried out.
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

-- A saved result: a question's query on a board, with the rows that it last gave. It outlives the conversation that it
-- comes from. `revision` counts the changes of what is asked: a refresh that began before one writes nothing. `result`,
-- `parameters`, `look` and `error` are JSON; `error` is that of the last refresh, NULL if that went well.
CREATE TABLE board_cards (
    id         TEXT PRIMARY KEY NOT NULL,
    board_id   TEXT NOT NULL REFERENCES boards (id) ON DELETE CASCADE,
    place      BIGINT NOT NULL,
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
    revision   BIGINT NOT NULL
);
CREATE INDEX board_cards_of_board ON board_cards (board_id, place);
CREATE INDEX board_cards_of_thread ON board_cards (asked_in) WHERE asked_in IS NOT NULL;

-- A link by which anybody may read a board as it was when the link was made: `shown`. Of its token there is only a hash.
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

-- The conversations whose results a link shows, also after their cards are taken off the board.
CREATE TABLE board_link_threads (
    link_id  TEXT NOT NULL REFERENCES board_links (id) ON DELETE CASCADE,
    asked_in TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    PRIMARY KEY (link_id, asked_in)
) WITHOUT ROWID;
CREATE INDEX board_link_threads_of_thread ON board_link_threads (asked_in);

-- The steps of a run that has not ended: model calls and tool calls.
CREATE TABLE steps (
    thread_id   TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    idx         BIGINT NOT NULL,
    run_id      TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('model', 'tool')),
    status      TEXT NOT NULL CHECK (status IN ('running', 'done', 'failed')),
    thought     TEXT NOT NULL DEFAULT '',
    action      TEXT NOT NULL DEFAULT '',
    args        TEXT NOT NULL DEFAULT '{}',
    observation TEXT,
    call_id     TEXT,
    usage       TEXT NOT NULL DEFAULT '{}',
    manifest    TEXT NOT NULL DEFAULT '[]',
    started_at  TEXT NOT NULL,
    elapsed_ms  BIGINT,
    -- The entry that is the step's reply or result: its text is the thought, or the observation.
    entry_seq   BIGINT,
    -- The row of `prompts` that went with the view of a model call.
    prompt      TEXT,
    told        TEXT NOT NULL DEFAULT '[]',
    last_event  BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (thread_id, idx)
);

-- The events of a run that has not ended, as far as they are no marks.
CREATE TABLE events (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    run_id    TEXT NOT NULL,
    seq       BIGINT NOT NULL,
    type      TEXT NOT NULL,
    data      TEXT NOT NULL,
    at        TEXT NOT NULL,
    PRIMARY KEY (thread_id, run_id, seq)
) WITHOUT ROWID;

-- The system prompts and tools that model calls were given, each once, compressed, under a hash of the content.
-- With row ids, several share a page: without, each would take one of its own.
CREATE TABLE prompts (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    id        TEXT NOT NULL,
    body      BYTEA NOT NULL,
    PRIMARY KEY (thread_id, id)
);

-- Tool calls that a person decides about before they are made. `message_id` is the reply that makes the call, `place` its
-- number in it, `parameters` the schema that other arguments must fit. `decision` is NULL while the call waits; `edited`
-- are the arguments that replace `args`.
CREATE TABLE approvals (
    thread_id   TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    run_id      TEXT NOT NULL,
    message_id  TEXT NOT NULL,
    call_id     TEXT NOT NULL,
    place       BIGINT NOT NULL,
    tool        TEXT NOT NULL,
    description TEXT NOT NULL,
    args        TEXT NOT NULL,
    parameters  TEXT NOT NULL,
    asked_at    TEXT NOT NULL,
    decision    TEXT CHECK (decision IN ('approve', 'edit', 'reject', 'superseded')),
    edited      TEXT,
    message     TEXT,
    decided_by  TEXT,
    decided_at  TEXT,
    PRIMARY KEY (thread_id, run_id, message_id, call_id)
) WITHOUT ROWID;

-- LangGraph's checkpoints. A message in one, wherever it is, is a reference to its entry.
--
-- `n` counts a namespace's checkpoints in the order in which they came: the last one is the newest, whatever the clocks
-- said that made the ids. `parent_n` is the checkpoint before it; where that never existed, `parent_id` names it. `body`
-- holds the checkpoint with its small values, and what its tasks wrote if that has no rows of its own: `writes` counts
-- it. Metadata that is only a number is that of a step: {"source":"loop","step":7,"parents":{}}.
CREATE TABLE checkpoints (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    ns        TEXT NOT NULL,
    n         BIGINT NOT NULL,
    parent_n  BIGINT,
    writes    BIGINT NOT NULL DEFAULT 0,
    id        TEXT NOT NULL,
    parent_id TEXT,
    metadata  TEXT NOT NULL,
    body      BYTEA NOT NULL,
    PRIMARY KEY (thread_id, ns, n)
) WITHOUT ROWID;

-- Values that are too large to be in each checkpoint, under the number of the one that stored them.
CREATE TABLE checkpoint_blobs (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    ns        TEXT NOT NULL,
    n         BIGINT NOT NULL,
    channel   TEXT NOT NULL,
    body      BYTEA NOT NULL,
    PRIMARY KEY (thread_id, ns, n, channel)
);

-- What the tasks of a checkpoint wrote that is not in its body: a row for each task.
CREATE TABLE checkpoint_writes (
    thread_id     TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    ns            TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    task_id       TEXT NOT NULL,
    task_path     TEXT NOT NULL DEFAULT '',
    writes        BIGINT NOT NULL,
    body          BYTEA NOT NULL,
    PRIMARY KEY (thread_id, ns, checkpoint_id, task_id)
) WITHOUT ROWID;

-- The tables of the source documents: agents, skills, tools, memories. The types are the documents'.

CREATE TABLE agents (
    id            UUID PRIMARY KEY NOT NULL DEFAULT gen_random_uuid(),
    name          VARCHAR(100) NOT NULL,
    description   TEXT,
    system_prompt TEXT NOT NULL,
    config        JSONB DEFAULT '{"model":"gpt-4o","temperature":0.7,"max_tokens":4096,"timeout_seconds":120}',
    skills        TEXT[] DEFAULT '{}',
    sub_agents    TEXT[] DEFAULT '{}',
    is_active     BOOLEAN DEFAULT TRUE,
    created_at    TIMESTAMPTZ DEFAULT now(),
    updated_at    TIMESTAMPTZ DEFAULT now()
);

CREATE INDEX idx_agents_name ON agents (name);
CREATE INDEX idx_agents_active ON agents (is_active) WHERE is_active = TRUE;

CREATE TABLE skills (
    id               UUID PRIMARY KEY NOT NULL DEFAULT gen_random_uuid(),
    name             VARCHAR(100) NOT NULL UNIQUE,
    description      TEXT,
    trigger_keywords TEXT[] DEFAULT '{}',
    tools            JSONB NOT NULL DEFAULT '[]',
    config           JSONB DEFAULT '{}',
    is_builtin       BOOLEAN DEFAULT FALSE,
    created_at       TIMESTAMPTZ DEFAULT now(),
    updated_at       TIMESTAMPTZ DEFAULT now()
);

CREATE INDEX idx_skills_name ON skills (name);
CREATE INDEX idx_skills_builtin ON skills (is_builtin);

CREATE TABLE tools (
    id             UUID PRIMARY KEY NOT NULL DEFAULT gen_random_uuid(),
    name           VARCHAR(100) NOT NULL UNIQUE,
    type           VARCHAR(50) NOT NULL,
    description    TEXT,
    schema         JSONB NOT NULL,
    implementation JSONB NOT NULL,
    is_active      BOOLEAN DEFAULT TRUE,
    created_at     TIMESTAMPTZ DEFAULT now(),
    updated_at     TIMESTAMPTZ DEFAULT now()
);

CREATE INDEX idx_tools_name ON tools (name);
CREATE INDEX idx_tools_type ON tools (type);

-- A database that may be asked. A password in its address is the name of a secret, `${NAME}`. `terms` and `examples` are
-- what people taught: business terms `[{"name","meaning","sql","synonyms"}]`, examples `[{"question","sql"}]`. `semantics`
-- are `{"metrics","dimensions","joins"}`.
CREATE TABLE sources (
    id          UUID PRIMARY KEY NOT NULL DEFAULT gen_random_uuid(),
    name        VARCHAR(100) NOT NULL UNIQUE,
    description TEXT,
    address     TEXT NOT NULL,
    is_active   BOOLEAN DEFAULT TRUE,
    created_at  TIMESTAMPTZ DEFAULT now(),
    updated_at  TIMESTAMPTZ DEFAULT now(),
    terms       JSONB DEFAULT '[]',
    examples    JSONB DEFAULT '[]',
    semantics   JSONB DEFAULT '{}'
);

-- A provider that the gateway asks, and its secret's name. `dialects` are those that it speaks; one that `holds_state` knows
-- threads and responses by their ids.
CREATE TABLE upstreams (
    id          UUID PRIMARY KEY NOT NULL DEFAULT gen_random_uuid(),
    name        VARCHAR(100) NOT NULL UNIQUE,
    description TEXT,
    base_url    TEXT NOT NULL,
    dialects    JSONB NOT NULL DEFAULT '[]',
    api_key     TEXT,
    holds_state BOOLEAN DEFAULT FALSE,
    is_active   BOOLEAN DEFAULT TRUE,
    created_at  TIMESTAMPTZ DEFAULT now(),
    updated_at  TIMESTAMPTZ DEFAULT now()
);

-- Which upstream the gateway asks for models of these names, a pattern such as `claude-*`, and by which name.
CREATE TABLE routes (
    id          UUID PRIMARY KEY NOT NULL DEFAULT gen_random_uuid(),
    name        VARCHAR(100) NOT NULL UNIQUE,
    description TEXT,
    models      TEXT NOT NULL,
    upstream    TEXT NOT NULL,
    model       TEXT,
    is_active   BOOLEAN DEFAULT TRUE,
    created_at  TIMESTAMPTZ DEFAULT now(),
    updated_at  TIMESTAMPTZ DEFAULT now()
);

-- What agents, skills, tools, sources, upstreams and routes were from a moment on; `body` is NULL after a deletion. Rows are only added.
CREATE TABLE catalog_versions (
    kind    TEXT NOT NULL CHECK (kind IN ('agent', 'skill', 'tool', 'source', 'upstream', 'route')),
    item_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    name    TEXT NOT NULL,
    body    TEXT,
    made_at TEXT NOT NULL,
    made_by TEXT,
    PRIMARY KEY (kind, item_id, version)
);

CREATE INDEX catalog_versions_of_name ON catalog_versions (kind, name);

-- A memory is one user's with one agent. It outlives the thread that it comes from: a trigger notes when the last one that
-- said it was deleted (`source_deleted_at`), and keeps what a model had read in it (`origin`, see memory_sources). Without
-- either thread or note, a person entered it. `said_at` is when its present words were said last (NULL: at `created_at`). `said` tells two that say the same. `terms` and `words` are what a search compares; `form` says of which content and in which form they were made.
-- `numbers` is the vector of the model `model`, of any number of dimensions; one of 1536 is in `embedding` too.
CREATE TABLE memories (
    id          UUID PRIMARY KEY NOT NULL DEFAULT gen_random_uuid(),
    agent_id    UUID NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    session_id  TEXT REFERENCES threads (id) ON DELETE SET NULL,
    content     TEXT NOT NULL,
    embedding   VECTOR(1536),
    memory_type VARCHAR(50) DEFAULT 'episodic' CHECK (memory_type IN ('episodic', 'semantic', 'procedural')),
    importance  FLOAT DEFAULT 0.5,
    metadata    JSONB DEFAULT '{}',
    expires_at  TIMESTAMPTZ,
    created_at  TIMESTAMPTZ DEFAULT now(),
    user_id     TEXT,
    said        TEXT,
    form        TEXT,
    words       BIGINT,
    terms       BYTEA,
    model       TEXT,
    numbers     VECTOR,
    origin      TEXT,
    source_deleted_at TIMESTAMPTZ,
    said_at     TIMESTAMPTZ
);

CREATE INDEX idx_memories_agent ON memories (agent_id);
CREATE INDEX idx_memories_type ON memories (memory_type);
CREATE INDEX idx_memories_importance ON memories (importance DESC);
CREATE INDEX memories_of_thread ON memories (session_id) WHERE session_id IS NOT NULL;
CREATE UNIQUE INDEX memories_of_user ON memories (user_id, agent_id, said);
CREATE INDEX memories_expire ON memories (expires_at) WHERE expires_at IS NOT NULL;

-- The entries that a memory comes from, for each thread that said it, with the words of that thread; '' in all of them
-- where it was made of several threads' words together. `origin` is what a model had read when it wrote the memory, as
-- JSON: `{"source", "results"}`; NULL: nothing but the conversation.
CREATE TABLE memory_sources (
    memory_id  UUID NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    session_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seqs       TEXT NOT NULL,
    content    TEXT NOT NULL,
    said_at    TEXT NOT NULL,
    origin     TEXT,
    PRIMARY KEY (memory_id, session_id)
) WITHOUT ROWID;

CREATE INDEX memory_sources_of_thread ON memory_sources (session_id);

-- The memories that a run's model was given, as the line that it saw, or has looked up.
CREATE TABLE memory_uses (
    session_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    run_id     TEXT NOT NULL,
    memory_id  UUID NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    how        TEXT NOT NULL CHECK (how IN ('given', 'found')),
    place      BIGINT NOT NULL,
    shown      TEXT NOT NULL,
    PRIMARY KEY (session_id, run_id, memory_id),
    FOREIGN KEY (session_id, run_id) REFERENCES runs (thread_id, id) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE INDEX memory_uses_of_memory ON memory_uses (memory_id);

-- A thread's summary tells of the entries of a branch from `first_seq` to `last_seq`; the window begins after the last.
-- `digest` is what is reported of them without a model, as JSON; `model` wrote the summary, or NULL.
CREATE TABLE conversation_summaries (
    thread_id     TEXT PRIMARY KEY NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    summary       TEXT NOT NULL,
    message_count INT DEFAULT 0,
    config_hash   TEXT,
    updated_at    TIMESTAMPTZ DEFAULT now(),
    first_seq     BIGINT,
    last_seq      BIGINT,
    model         TEXT,
    digest        TEXT
);

-- The vectors of entries: `seq` is the entry, `model` made the vector, of any number of dimensions.
CREATE TABLE memory_vectors (
    id         TEXT PRIMARY KEY NOT NULL,
    thread_id  TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    chunk      TEXT NOT NULL,
    topics     TEXT[] DEFAULT '{}',
    embedding  VECTOR,
    created_at TIMESTAMPTZ DEFAULT now(),
    seq        BIGINT,
    model      TEXT
);

CREATE INDEX idx_memory_vectors_thread ON memory_vectors (thread_id);
CREATE INDEX memory_vectors_of_entries ON memory_vectors (thread_id, model, seq) WHERE seq IS NOT NULL;

CREATE TABLE memory_topics (
    thread_id     TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    topic         TEXT NOT NULL,
    mention_count INT DEFAULT 1,
    last_seen_at  TIMESTAMPTZ DEFAULT now(),
    PRIMARY KEY (thread_id, topic)
) WITHOUT ROWID;

-- The stretches of a thread that are about a topic: `memory_topics` adds them up, and recall by a topic is narrowed to
-- them.
CREATE TABLE memory_topic_spans (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    topic     TEXT NOT NULL,
    first_seq BIGINT NOT NULL,
    last_seq  BIGINT NOT NULL,
    mentions  BIGINT NOT NULL,
    seen_at   TEXT NOT NULL,
    PRIMARY KEY (thread_id, topic, first_seq)
);

-- The client that a thread's conversation came from, when it came through the gateway: document 003's kind of client, and
-- a finer label (`codex`, `opencode`, `aider`, `sdk`, …). `owner` is a hash of the credential that the client showed, with
-- the store's own salt; NULL: nobody has gone on with the conversation since owners are stored, or since it was copied here.
CREATE TABLE thread_clients (
    thread_id      TEXT PRIMARY KEY NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    client_type    TEXT NOT NULL DEFAULT 'unknown'
        CHECK (client_type IN ('cursor', 'augment', 'claude_code', 'unknown')),
    last_signature TEXT,
    access_count   BIGINT NOT NULL DEFAULT 0,
    client         TEXT NOT NULL DEFAULT 'unknown',
    owner          TEXT
) WITHOUT ROWID;

CREATE INDEX thread_clients_unowned ON thread_clients (thread_id) WHERE owner IS NULL;

-- What owners are hashed with: random, in hexadecimal. `id` is `owners`.
CREATE TABLE gateway_salt (
    id   TEXT PRIMARY KEY NOT NULL,
    salt TEXT NOT NULL
);

-- What calls of a thread through the gateway have in common: whom they asked and, compressed, what they said beside their
-- messages (system prompt, tools, parameters). `id` is a hash of all of it. In older frames whom they asked is
-- NULL: there the calls say it.
CREATE TABLE gateway_frames (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    id        TEXT NOT NULL,
    dialect   TEXT,
    upstream  TEXT,
    family    TEXT,
    model     TEXT,
    body      BYTEA NOT NULL,
    PRIMARY KEY (thread_id, id)
);

-- A call of a model through the gateway. Its messages are the entries up to `asked_seq`, its reply those from `reply_seq` to
-- `reply_end`. `asked` and `ends` count the visible parts of the branch up to the request's end and the reply's.
--
-- Hidden parts: those that call `base` carried, then the ones of its reply, then `hidden`:
-- `[[part, behind it, field or null, JSON text], …]`, compressed. `hidden_hash` is the hash of all up to this reply's end.
-- `previous` is the call whose reply came before on the branch. A provider refused the hidden parts of a `refused` reply.
--
-- `head` is what else the reply said: `[usage, the other fields, why it broke off]`, compressed. `response_id` is the
-- provider's id, if the reply may be asked for by it. `started_at` counts microseconds from 1970. Set only in older rows:
-- `dialect`, `upstream`, `family` and `model`, which the frame has, and `usage`.
CREATE TABLE gateway_calls (
    thread_id   TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    n           BIGINT NOT NULL,
    response_id TEXT,
    dialect     TEXT,
    upstream    TEXT,
    family      TEXT,
    model       TEXT,
    frame       TEXT NOT NULL,
    tools       BIGINT NOT NULL,
    status      BIGINT NOT NULL,
    asked_seq   BIGINT NOT NULL,
    reply_seq   BIGINT,
    reply_end   BIGINT,
    asked       BIGINT NOT NULL,
    ends        BIGINT NOT NULL,
    previous    BIGINT NOT NULL DEFAULT 0,
    base        BIGINT NOT NULL DEFAULT 0,
    hidden      BYTEA,
    hidden_hash BYTEA,
    restored    BIGINT NOT NULL DEFAULT 0,
    dropped     BIGINT NOT NULL DEFAULT 0,
    refused     BOOLEAN NOT NULL DEFAULT FALSE,
    usage       TEXT,
    head        BYTEA,
    started_at  BIGINT NOT NULL,
    elapsed_ms  BIGINT NOT NULL,
    PRIMARY KEY (thread_id, n)
) WITHOUT ROWID;

-- Where a prefix of a conversation is: `node` stands for all visible parts up to the end of an entry. `call` is the last one
-- whose reply is in the prefix, 0 if none is. With a `place` above 0, `node` stands for an id of the provider's; with -1 for
-- the prefix that call `call` asked and that has no whole reply; with -2 for a reply by itself, and with a lower one for an
-- id of its calls. All of it can be computed from the entries and the calls. There are several rows a request: the thread is
-- its number, not its id.
CREATE TABLE gateway_nodes (
    thread BIGINT NOT NULL REFERENCES threads (number) ON DELETE CASCADE,
    seq    BIGINT NOT NULL,
    place  BIGINT NOT NULL,
    node   BIGINT NOT NULL,
    call   BIGINT NOT NULL,
    PRIMARY KEY (thread, seq, place)
) WITHOUT ROWID;

CREATE INDEX gateway_nodes_by_node ON gateway_nodes (node) WHERE call > 0;

-- The context windows that endpoints reported for their models, where that is less than was assumed (`assumed`, in
-- tokens): by a setting, a model's profile, or in general. Another assumption is tried again.
CREATE TABLE context_windows (
    model      TEXT NOT NULL,
    endpoint   TEXT NOT NULL,
    assumed    BIGINT NOT NULL,
    tokens     BIGINT NOT NULL,
    learned_at TEXT NOT NULL,
    PRIMARY KEY (model, endpoint, assumed)
);

-- How a model speaks best, as a probe of its endpoint found: `native`, `json` or `sql`.
CREATE TABLE model_protocols (
    model     TEXT NOT NULL,
    endpoint  TEXT NOT NULL,
    protocol  TEXT NOT NULL,
    probed_at TEXT NOT NULL,
    PRIMARY KEY (model, endpoint)
);

-- The tables recall_… are the index of entries. They follow from the entries: they can be dropped and made again.

-- The entries from `first_seq` to `last_seq` are indexed, by the terms of `form`. `times` has their places and times.
CREATE TABLE recall_segments (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    first_seq BIGINT NOT NULL,
    last_seq  BIGINT NOT NULL,
    form      BIGINT NOT NULL,
    entries   BIGINT NOT NULL,
    words     BIGINT NOT NULL,
    times     BYTEA NOT NULL,
    PRIMARY KEY (thread_id, first_seq)
);

-- The postings of one bucket's terms in the segment that begins with entry `segment`.
CREATE TABLE recall_postings (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    bucket    BIGINT NOT NULL,
    segment   BIGINT NOT NULL,
    data      BYTEA NOT NULL,
    PRIMARY KEY (thread_id, bucket, segment)
);

-- Two bits of each number of the vectors of 1,024 entries that follow one another: they tell which vectors may be near
-- without reading these. `stamp` tells whether a copy in memory is still the same.
CREATE TABLE recall_signatures (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    model     TEXT NOT NULL,
    block     BIGINT NOT NULL,
    stamp     TEXT NOT NULL,
    data      BYTEA NOT NULL,
    PRIMARY KEY (thread_id, model, block)
);

-- Entries up to `last_seq` have vectors of a model, if they can have one. From entry `signed_from` on all have their
-- signatures; NULL: not known yet. `refused` counts the entries that the embedder did not take.
CREATE TABLE recall_embedded (
    thread_id   TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    model       TEXT NOT NULL,
    last_seq    BIGINT NOT NULL,
    signed_from BIGINT,
    refused     BIGINT NOT NULL,
    PRIMARY KEY (thread_id, model)
);

-- The index of many threads of a user, merged: a question to all of them reads few values. `members` says which threads a
-- volume has, and at which of its places.
CREATE TABLE recall_volumes (
    user_id TEXT NOT NULL,
    id      TEXT NOT NULL,
    form    BIGINT NOT NULL,
    entries BIGINT NOT NULL,
    words   BIGINT NOT NULL,
    members TEXT NOT NULL,
    PRIMARY KEY (user_id, id)
);

-- The postings of one bucket's terms in a volume.
CREATE TABLE recall_volume_postings (
    user_id TEXT NOT NULL,
    bucket  BIGINT NOT NULL,
    volume  TEXT NOT NULL,
    data    BYTEA NOT NULL,
    PRIMARY KEY (user_id, bucket, volume)
);

-- The volume that a thread is in.
CREATE TABLE recall_bound (
    thread_id TEXT NOT NULL PRIMARY KEY REFERENCES threads (id) ON DELETE CASCADE,
    user_id   TEXT NOT NULL,
    volume    TEXT NOT NULL
);

CREATE INDEX recall_bound_in ON recall_bound (user_id, volume);

-- The threads that are in no volume, or changed since: their own index is read.
CREATE TABLE recall_loose (
    thread_id TEXT NOT NULL PRIMARY KEY REFERENCES threads (id) ON DELETE CASCADE,
    user_id   TEXT NOT NULL
);

CREATE INDEX recall_loose_of ON recall_loose (user_id);

-- What applications store beside their conversations: values by namespace and key, as LangGraph's stores have them.
-- `namespace` has its parts joined by dots. `fields` says what of the value a search finds: JSON, a list of paths, false
-- for nothing, null for the store's own setting. `form` is that of its terms, and `embedded` the name of the index that
-- its vectors were made for.
CREATE TABLE items (
    user_id     TEXT NOT NULL,
    namespace   TEXT NOT NULL,
    key         TEXT NOT NULL,
    value       TEXT NOT NULL,
    created_at  TEXT NOT NULL,
    updated_at  TEXT NOT NULL,
    expires_at  TEXT,
    ttl_minutes DOUBLE PRECISION,
    fields      TEXT NOT NULL,
    form        BIGINT NOT NULL,
    words       BIGINT NOT NULL,
    embedded    TEXT NOT NULL,
    PRIMARY KEY (user_id, namespace, key)
);

CREATE INDEX items_newest ON items (user_id, updated_at);
CREATE INDEX items_expiring ON items (user_id, expires_at) WHERE expires_at IS NOT NULL;

-- How often an item says a term, which is stored as a hash.
CREATE TABLE item_terms (
    user_id   TEXT NOT NULL,
    term      BIGINT NOT NULL,
    namespace TEXT NOT NULL,
    key       TEXT NOT NULL,
    count     BIGINT NOT NULL,
    PRIMARY KEY (user_id, term, namespace, key),
    FOREIGN KEY (user_id, namespace, key) REFERENCES items (user_id, namespace, key) ON DELETE CASCADE
);

CREATE INDEX item_terms_of_items ON item_terms (user_id, namespace, key);

-- A vector of a text of an item's value, of any number of dimensions.
CREATE TABLE item_vectors (
    user_id   TEXT NOT NULL,
    namespace TEXT NOT NULL,
    key       TEXT NOT NULL,
    field     TEXT NOT NULL,
    embedding VECTOR NOT NULL,
    PRIMARY KEY (user_id, namespace, key, field),
    FOREIGN KEY (user_id, namespace, key) REFERENCES items (user_id, namespace, key) ON DELETE CASCADE
);
