"""The tables, columns, indexes and queries that the source documents print are all here, under their names."""

from __future__ import annotations

import json
import re
import sqlite3
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import psycopg.types.string
import pytest
from tests.store.conftest import Plain
from tests.store.documented import (
    SOURCES,
    Documented,
    Shape,
    blocks,
    described,
    documented,
    indexes_in,
    questions,
    shape_in_postgres,
    shape_in_sqlite,
    text_of,
)
from tests.store.talk import talk

from longthread.model.fold import state_of
from longthread.store import log
from longthread.store.driver import Driver

THREAD = "ed51f46b-9a38-4b4a-8dad-dd4134b53309"
"""The conversation that document 000 asks for."""

VIEWS = {
    "conversations",
    "conversation_steps",
    "sessions",
    "messages",
    "conversation_state",
    "thread_activity",
}

OTHER_TYPES = {
    # Threads and entries have ids of any form.
    **dict.fromkeys(["sessions.id", "sessions.agent_id", "messages.id", "messages.session_id"], "text"),
    **dict.fromkeys(["messages.parent_id", "memories.session_id"], "text"),
    # Documents 000 and 003 are written for SQLite, where JSON and times are text.
    **dict.fromkeys(["conversations.tool_categories", "conversations.tags", "conversations.state_data"], "json"),
    **dict.fromkeys(["conversation_steps.step_data", "conversation_state.authoritative_history"], "json"),
    **dict.fromkeys([f"conversation_state.{name}_at" for name in ("created", "updated", "expires")], "time"),
}
"""Columns that have another type on PostgreSQL than the document says."""

IN_SQLITE = {
    **dict.fromkeys(["text", "uuid", "json", "list", "time"], "text"),
    **dict.fromkeys(["boolean", "integer"], "integer"),
    "real": "real",
    "vector": "blob",
}

OTHER_INDEXES: Mapping[str, tuple[str, str, str] | None] = {
    "idx_sessions_agent": ("threads", "agent_id", "agent_id is not null"),
    "idx_sessions_user": ("threads", "user_id, updated_at DESC", ""),
    "idx_sessions_status": ("threads", "status", "status <> 'active'"),
    "idx_sessions_created": None,
    "idx_messages_session": None,  # The key of the entries begins with the thread,
    "idx_messages_created": None,  # and goes on with their order in time.
    "idx_messages_role": None,
    "idx_conversation_state_scid": None,  # It is the threads' key.
    "idx_conversation_state_expires": ("threads", "expires_at", "expires_at is not null"),
}
"""Indexes of what is a view here."""

ONLY_ON_POSTGRES = {"idx_memories_embedding", "idx_memory_vectors_topics"}
OTHER_NAMES = {"idx_sessions_user": "threads_of_user"}

MINIMAL: dict[str, dict[str, Any]] = {
    "agents": {"name": "a", "system_prompt": "s"},
    "skills": {"name": "a"},
    "tools": {"name": "a", "type": "api", "schema": "{}", "implementation": "{}"},
    "memories": {"content": "c"},
    "conversation_summaries": {"thread_id": THREAD, "summary": "s"},
    "memory_vectors": {"id": "v", "thread_id": THREAD, "chunk": "c"},
    "memory_topics": {"thread_id": THREAD, "topic": "x"},
}
"""The least that a row must say."""

SET_BY_US = {"conversation_summaries.updated_at", "memory_vectors.created_at", "memory_topics.last_seen_at"}
"""Times that the documents leave to the writer."""


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> str:
    """Where the statements are read: the documents, or what says the same as they."""
    return str(request.param)


@pytest.fixture
def documents(source: str, postgres_url: str) -> Iterator[Documented]:
    with documented(source, postgres_url) as made:
        yield made


@pytest.fixture
def ours(store: Driver, store_address: str) -> Iterator[sqlite3.Connection | psycopg.Connection[Any]]:
    if store.dialect == "sqlite":
        with closing(sqlite3.connect(store_address)) as file:
            yield file
    else:
        with psycopg.connect(store_address, autocommit=True) as server:
            yield server


def shape_of(connection: sqlite3.Connection | psycopg.Connection[Any]) -> Shape:
    return shape_in_sqlite(connection) if isinstance(connection, sqlite3.Connection) else shape_in_postgres(connection)


def test_every_documented_table_and_column_is_here(
    source: str, documents: Documented, ours: sqlite3.Connection | psycopg.Connection[Any]
) -> None:
    wanted, found = described(source) | documents.shape, shape_of(ours)
    assert set(wanted) == VIEWS | set(MINIMAL)
    for table, columns in wanted.items():
        for name, column in columns.items():
            place = f"{table}.{name}"
            assert name in found[table], place
            here = found[table][name]
            if isinstance(ours, psycopg.Connection):
                assert here.family == OTHER_TYPES.get(place, column.family), place
            elif table not in VIEWS:
                assert here.family == IN_SQLITE[column.family], place
            if table not in VIEWS:
                assert here.required == column.required, place


def test_every_documented_index_is_here(
    documents: Documented, ours: sqlite3.Connection | psycopg.Connection[Any]
) -> None:
    wanted, found = documents.indexes, indexes_in(ours)
    on_sqlite = isinstance(ours, sqlite3.Connection)
    checked = 0
    for name, index in wanted.items():
        index_here = OTHER_INDEXES.get(name, index)
        if name.endswith("_key") or name.endswith("_pkey") or index_here is None:
            continue
        if on_sqlite and name in ONLY_ON_POSTGRES:
            assert name not in found
            continue
        assert found[OTHER_NAMES.get(name, name)] == index_here, name
        checked += 1
    assert checked >= 14


def test_a_row_that_says_the_least_gets_the_documented_defaults(
    documents: Documented, plain: Plain, store: Driver
) -> None:
    plain("INSERT INTO threads (id, created_at, updated_at) VALUES (?, 'then', 'then')", [THREAD])

    def documented_rows(sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        cursor = documents.server.execute(sql.replace("?", "%s").encode(), values)
        return cursor.fetchall() if cursor.description else []

    for table, columns in documents.shape.items():
        if table in VIEWS:
            continue
        theirs, here = (default_row(run, table, list(columns)) for run in (documented_rows, plain))
        for (name, column), told, given in zip(columns.items(), theirs, here, strict=True):
            wanted = meaning(column.family, told)
            if f"{table}.{name}" in SET_BY_US:
                assert wanted is None
                wanted = "now"
            assert meaning(column.family, given) == wanted, f"{table}.{name}"


def default_row(run: Callable[..., list[tuple[Any, ...]]], table: str, columns: list[str]) -> tuple[Any, ...]:
    values = dict(MINIMAL[table])
    if "agent_id" in columns:
        [(agent,)] = run("SELECT id FROM agents WHERE name = ?", [MINIMAL["agents"]["name"]])
        values["agent_id"] = str(agent)
    rows = f"SELECT {', '.join(columns)} FROM {table}"
    builtin = run(rows)
    run(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})", list(values.values()))
    [row] = [each for each in run(rows) if each not in builtin]
    return row


def meaning(family: str, value: Any) -> Any:
    """What a value says, on every backend and at every time."""
    if value is None:
        return None
    if family == "uuid" and str(uuid.UUID(str(value))) == str(value):
        return uuid.UUID(str(value)).version
    if family == "time":
        at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        assert abs(at - datetime.now(UTC)) < timedelta(minutes=5)
        return "now"
    if family in {"json", "list"}:
        return json.loads(value) if isinstance(value, str) else value
    return bool(value) if family == "boolean" else value


def test_every_name_is_in_the_guide(source: str, documents: Documented) -> None:
    page = (Path(__file__).parents[2] / "docs/reference/documents.md").read_text("utf-8")
    for table, columns in (described(source) | documents.shape).items():
        assert f"`{table}`" in page, table
        assert not [name for name in columns if f"`{name}`" not in page], table


@pytest.mark.parametrize("backend", ["sqlite"])
async def test_the_queries_of_document_000_run_unchanged(source: str, store: Driver, plain: Plain) -> None:
    branch = await talk(store, THREAD)
    await talk(store, "another")
    plain("INSERT INTO conversation_summaries (thread_id, summary, message_count) VALUES (?, '**摘要**', 4)", [THREAD])
    listed, summary, whole = (plain(sql) for sql in questions(source, "000"))
    assert [(row[0], row[1], row[4]) for row in listed] == [
        ("another", "运载火箭有哪些？", 2),
        (THREAD, "运载火箭有哪些？", 2),
    ]
    assert summary == [(THREAD, "**摘要**", 4)]
    state = json.loads(whole[0][0])
    assert state == state_of(branch) | {"compressed_summary": "**摘要**", "compressed_message_count": 4}


def test_the_state_has_the_documented_keys(source: str) -> None:
    [example] = blocks(source, "000", "json")
    state = state_of([])
    assert re.findall(r'^  "(\w+)":', example, re.MULTILINE)
    assert set(re.findall(r'^  "(\w+)":', example, re.MULTILINE)) == set(state)


AS_TEXT = psycopg.types.string.StrDumper
"""Binds a text as `text`; psycopg leaves it to the server else to find its type."""


@pytest.mark.parametrize("bound", [uuid.UUID, str, "text"])
@pytest.mark.parametrize("backend", ["postgres"])
async def test_the_queries_of_document_002_run_unchanged(
    source: str, store: Driver, store_address: str, bound: Any
) -> None:
    """Whatever a program binds to an id: a UUID, a text, or a text of which the server is to find the type."""
    branch = await talk(store, THREAD)
    skill, agent, helper = (str(uuid.uuid4()) for _ in range(3))
    with psycopg.connect(store_address, autocommit=True) as server:
        server.execute("INSERT INTO skills (id, name) VALUES (%s, 'search')", [skill])
        server.execute("INSERT INTO agents (id, name, system_prompt) VALUES (%s, 'helper', 'h')", [helper])
        server.execute(
            "INSERT INTO agents (id, name, system_prompt, skills, sub_agents) VALUES (%s, 'main', 'm', %s, %s)",
            [agent, [skill], [helper]],
        )
        for number in range(12):
            server.execute(
                "INSERT INTO memories (agent_id, session_id, content, embedding, expires_at) "
                "VALUES (%s, %s, %s, %s, %s)",
                [agent, THREAD, str(number), str(vector(number)), datetime(2020, 1, 1) if number == 3 else None],
            )
        config, history, similar = questions(source, "002")
        # Values go to the server beside the statement, which is sent as it is.
        given: Callable[[str], Any] = str if bound == "text" else bound
        with psycopg.RawCursor(server, row_factory=psycopg.rows.dict_row) as cursor:
            if bound == "text":
                cursor.adapters.register_dumper(str, AS_TEXT)
            [found] = cursor.execute(config.encode(), [given(agent)]).fetchall()
            assert [detail["name"] for detail in found["skill_details"]] == ["search"]
            assert [detail["name"] for detail in found["sub_agent_details"]] == ["helper"]
            told = cursor.execute(history.encode(), [given(THREAD)]).fetchall()
            near = cursor.execute(similar.encode(), [str(vector(2)), given(agent)]).fetchall()
    assert [row["id"] for row in told] == [entry.id for entry in branch] + ["again"]
    assert told[2]["tool_calls"][1]["function"] == {"name": "run_sql", "arguments": '{"sql":"SELECT \'深\'"}'}
    assert [row["content"] for row in near[:3]] == ["2", "1", "4"]
    assert near[0]["similarity"] == pytest.approx(1)
    assert len(near) == 10


@pytest.mark.parametrize("backend", ["postgres"])
async def test_the_documented_keys_join_and_are_found_by_uuids(store: Driver, store_address: str) -> None:
    """The arrows of document 002's diagram: an agent's sessions, their messages, and those before; by an index."""
    agent, thread = str(uuid.uuid4()), uuid.UUID(THREAD)
    await talk(store, THREAD)
    with psycopg.connect(store_address, autocommit=True) as server:
        server.execute("INSERT INTO agents (id, name, system_prompt) VALUES (%s, 'main', 'm')", [agent])
        async with store.writing() as tx:
            await log.set_agent(tx, THREAD, agent)
        joined = server.execute(
            "SELECT count(*) FROM agents a JOIN sessions s ON s.agent_id = a.id JOIN messages m ON m.session_id = s.id "
            "LEFT JOIN messages p ON p.id = m.parent_id WHERE s.id = %s AND a.id = s.agent_id AND m.id <> %s",
            [thread, thread],
        ).fetchall()
        assert joined[0][0] >= 6
        for sql in ("SELECT 1 FROM sessions WHERE id = ANY(%s)", "SELECT 1 FROM sessions WHERE NOT id <> ALL(%s)"):
            assert server.execute(sql.encode(), [[thread]]).fetchall() == [(1,)]
        server.execute("SET enable_seqscan = off")  # it reads so small a table whole
        for sql in ("messages WHERE session_id = %s", "sessions WHERE id = %s"):
            plan = str(server.execute(f"EXPLAIN SELECT * FROM {sql}".encode(), [thread]).fetchall())
            assert f"::text = '{THREAD}'::text" in plan.replace('"', "") or f"= '{THREAD}'::text" in plan
            assert "Index Cond" in plan or "Index Scan" in plan, plan


def vector(number: int) -> list[float]:
    return [1.0, number / 10, *[0.0] * 1534]


async def test_a_sessions_history_is_asked_for_in_the_same_words_on_both_backends(
    source: str, store: Driver, plain: Plain
) -> None:
    branch = await talk(store, THREAD)
    told = plain(questions(source, "002")[1].replace("$1", "?"), [THREAD])
    assert [row[:3] for row in told[:-1]] == [(entry.id, entry.role, entry.text) for entry in branch]


def test_the_json_that_document_002_shows_can_be_kept(source: str, plain: Plain) -> None:
    config, tools, schema, implementations, calls = blocks(source, "002", "json")
    plain("INSERT INTO agents (name, system_prompt, config) VALUES ('a', 's', ?)", [config])
    plain("INSERT INTO skills (name, tools) VALUES ('a', ?)", [tools])
    kinds = ["api", "code", "query"]
    for kind, text in zip(kinds, re.split(r"^// .*$", implementations, flags=re.MULTILINE)[1:], strict=False):
        plain(
            "INSERT INTO tools (name, type, schema, implementation) VALUES (?, ?, ?, ?)",
            [kind, json.loads(text)["type"], schema, text],
        )
    for sql, text in (
        ("SELECT config FROM agents WHERE name = 'a'", config),
        ("SELECT tools FROM skills WHERE name = 'a'", tools),
        ("SELECT schema FROM tools WHERE name = 'api'", schema),
    ):
        assert meaning("json", plain(sql)[0][0]) == json.loads(text)
    assert [set(call) for call in json.loads(calls)] == [{"id", "type", "function"}]
    assert plain("SELECT DISTINCT type FROM tools WHERE name = type ORDER BY type")[:2] == [("api",), ("code",)]


async def test_document_003_names_what_a_conversations_state_holds(source: str, store: Driver, plain: Plain) -> None:
    await talk(store, THREAD)
    named = re.findall(r'^    "(\w+)": \w+,? +#', text_of(source, "003"), re.MULTILINE) or ["scid", "access_count"]
    [row] = plain(f"SELECT {', '.join(named)} FROM conversation_state")
    assert dict(zip(named, row, strict=True))["scid"] == THREAD
