"""What the documents forbid is refused, what they keep up to date is, and what belongs to a thread or an agent goes
with it."""

from __future__ import annotations

import sqlite3
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from tests.store.conftest import Plain
from tests.store.talk import talk

from longthread.store import log
from longthread.store.driver import Driver

AGENT = str(uuid.UUID(int=7, version=4))
OTHER = str(uuid.UUID(int=8, version=4))
LONG = "字" * 101
REFUSED = (sqlite3.IntegrityError, sqlite3.OperationalError, psycopg.Error)

Row = dict[str, Any]


def insert(plain: Plain, table: str, **values: Any) -> None:
    names = ", ".join(values)
    plain(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(values))})", list(values.values()))


@pytest.fixture
def filled(plain: Plain) -> None:
    """A thread and an agent."""
    insert(plain, "threads", id="t", created_at="2026-01-01T00:00:00+00:00", updated_at="2026-01-01T00:00:00+00:00")
    insert(plain, "agents", id=AGENT, name="a", system_prompt="s")


def tool(**values: Any) -> tuple[str, Row]:
    return "tools", {"name": "x", "type": "api", "schema": "{}", "implementation": "{}"} | values


def memory(**values: Any) -> tuple[str, Row]:
    return "memories", {"agent_id": AGENT, "content": "c"} | values


def entry(**values: Any) -> tuple[str, Row]:
    row = {"thread_id": "t", "seq": 1, "parent_seq": 0, "id": "e", "role": "user", "text": "x", "created_at": "now"}
    return "entries", row | values


def thread(**values: Any) -> tuple[str, Row]:
    return "threads", {"id": "new", "created_at": "now", "updated_at": "now"} | values


ACCEPTED = [
    *(tool(type=kind) for kind in ("api", "code", "query", "mcp", "of_a_plugin")),
    *(memory(memory_type=kind) for kind in ("episodic", "semantic", "procedural")),
    *(entry(role=role) for role in ("system", "user", "assistant", "tool")),
    *(thread(status=status) for status in ("active", "paused", "completed", "failed")),
    *(
        ("thread_clients", {"thread_id": "t", "client_type": kind})
        for kind in ("cursor", "augment", "claude_code", "unknown")
    ),
    ("agents", {"name": LONG[1:], "system_prompt": "s"}),
    ("skills", {"name": "s", "tools": '[{"tool_id": "x"}]'}),
    ("memory_vectors", {"id": "v", "thread_id": "t", "chunk": "c"}),
    ("memory_topics", {"thread_id": "t", "topic": "x"}),
    ("conversation_summaries", {"thread_id": "t", "summary": "s"}),
]
VIOLATIONS = [
    tool(type=None),
    tool(name=LONG),
    tool(name=None),
    tool(schema="no json"),
    tool(schema=None),
    tool(implementation="{"),
    memory(memory_type="working"),
    memory(agent_id=OTHER),
    memory(agent_id=None),
    memory(session_id="nowhere"),
    memory(content=None),
    memory(metadata="no json"),
    entry(role="developer"),
    entry(thread_id="nowhere"),
    thread(status="archived"),
    ("thread_clients", {"thread_id": "t", "client_type": "emacs"}),
    ("thread_clients", {"thread_id": "nowhere"}),
    ("agents", {"name": LONG, "system_prompt": "s"}),
    ("agents", {"name": "a", "system_prompt": None}),
    ("agents", {"name": "a", "system_prompt": "s", "config": "gpt"}),
    ("agents", {"name": "a", "system_prompt": "s", "skills": "s1, s2"}),
    ("agents", {"name": "a", "system_prompt": "s", "is_active": "perhaps"}),
    ("skills", {"name": LONG}),
    ("skills", {"name": "s", "tools": None}),
    ("memory_vectors", {"id": "v", "thread_id": "nowhere", "chunk": "c"}),
    ("memory_topics", {"thread_id": "t", "topic": None}),
    ("conversation_summaries", {"thread_id": "t", "summary": None}),
    *((view, {"thread_id": "t"}) for view in ("conversations", "conversation_steps", "thread_activity")),
    ("sessions", {"id": "s"}),
    ("messages", {"id": "m", "session_id": "t", "role": "bot", "content": "c"}),
    ("conversation_state", {"scid": "s", "client_type": "unknown"}),
]


@pytest.mark.usefixtures("filled")
def test_what_the_documents_allow_is_taken(plain: Plain) -> None:
    for table, values in ACCEPTED:
        plain("BEGIN")
        insert(plain, table, **values)
        plain("ROLLBACK")


@pytest.mark.usefixtures("filled")
def test_what_the_documents_forbid_is_refused(plain: Plain) -> None:
    for table, values in VIOLATIONS:
        with pytest.raises(REFUSED):
            insert(plain, table, **values)
            pytest.fail(f"{table} took {values}")


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("skills", {"name": "s"}),
        tool(),
        ("agents", {"id": OTHER, "name": "b", "system_prompt": "s"}),
        ("memory_vectors", {"id": "v", "thread_id": "t", "chunk": "c"}),
        ("memory_topics", {"thread_id": "t", "topic": "x"}),
        ("conversation_summaries", {"thread_id": "t", "summary": "s"}),
        ("thread_clients", {"thread_id": "t"}),
    ],
)
def test_a_name_or_a_key_is_taken_once(plain: Plain, table: str, values: Row) -> None:
    insert(plain, table, **values)
    with pytest.raises(REFUSED, match=r"(?i)unique"):
        insert(plain, table, **values)


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("table", "values", "change"),
    [
        ("agents", {"id": OTHER, "name": "b", "system_prompt": "s"}, "name = 'c'"),
        ("skills", {"name": "s"}, "description = 'd'"),
        (*tool(), "is_active = FALSE"),
        ("conversation_summaries", {"thread_id": "t", "summary": "s"}, "summary = 'longer', message_count = 2"),
        ("skills", {"name": "s"}, "updated_at = '2001-01-01T00:00:00+00:00'"),
    ],
)
def test_updated_at_is_kept_by_the_database(plain: Plain, table: str, values: Row, change: str) -> None:
    past = "2020-01-01T00:00:00+00:00"
    insert(plain, table, **values, updated_at=past)
    condition = " AND ".join(f"{name} = '{value}'" for name, value in values.items() if name in {"id", "thread_id"})
    where = condition or f"name = '{values['name']}'"

    def updated_at() -> datetime:
        [(value,)] = plain(f"SELECT updated_at FROM {table} WHERE {where}")
        return value if isinstance(value, datetime) else datetime.fromisoformat(value)

    assert updated_at() == datetime.fromisoformat(past)
    plain(f"UPDATE {table} SET {change} WHERE {where}")
    assert abs(updated_at() - datetime.now(UTC)) < timedelta(minutes=5)


def test_triggers_that_fire_for_their_own_changes_come_to_an_end(plain: Plain, store: Driver) -> None:
    if store.dialect == "sqlite":
        plain("PRAGMA recursive_triggers = ON")
    insert(plain, "skills", name="s", updated_at="2020-01-01T00:00:00+00:00")
    plain("UPDATE skills SET description = 'd'")
    [(value,)] = plain("SELECT updated_at FROM skills WHERE name = 's'")
    assert str(value) > "2021"


def test_an_id_that_is_not_given_is_a_random_uuid(plain: Plain) -> None:
    for number in range(50):
        insert(plain, "skills", name=str(number))
    ids = {uuid.UUID(str(value)) for (value,) in plain("SELECT id FROM skills WHERE NOT is_builtin")}
    assert {(one.version, one.variant) for one in ids} == {(4, uuid.RFC_4122)}
    assert len(ids) == 50


async def test_what_is_kept_of_a_thread_goes_with_it(store: Driver, plain: Plain) -> None:
    await talk(store, "t")
    await talk(store, "other")
    insert(plain, "agents", id=AGENT, name="a", system_prompt="s")
    for thread_id in ("t", "other"):
        insert(plain, "memories", agent_id=AGENT, session_id=thread_id, content=thread_id)
        insert(plain, "conversation_summaries", thread_id=thread_id, summary="s")
        insert(plain, "memory_vectors", id=thread_id, thread_id=thread_id, chunk="c")
        insert(plain, "memory_topics", thread_id=thread_id, topic="x")
        insert(plain, "thread_clients", thread_id=thread_id)
    async with store.writing() as tx:
        await log.delete_thread(tx, "t", user_id="u")
    for table in ("conversation_summaries", "memory_vectors", "memory_topics", "thread_clients", "conversations"):
        assert plain(f"SELECT thread_id FROM {table}") == [("other",)], table
    assert plain("SELECT DISTINCT session_id FROM messages") == [("other",)]
    # As document 002 has it: ON DELETE SET NULL.
    assert plain("SELECT content, session_id FROM memories ORDER BY content") == [("other", "other"), ("t", None)]


async def test_a_session_and_a_memory_go_with_their_agent(store: Driver, plain: Plain) -> None:
    for thread_id in ("mine", "free"):
        await talk(store, thread_id)
    insert(plain, "agents", id=AGENT, name="a", system_prompt="s")
    insert(plain, "memories", agent_id=AGENT, content="c")
    plain("UPDATE threads SET agent_id = ? WHERE id = 'mine'", [AGENT])
    assert plain("SELECT id FROM sessions WHERE agent_id = ?", [AGENT]) == [("mine",)]
    plain("DELETE FROM agents")
    assert plain("SELECT id FROM sessions") == [("free",)]
    assert plain("SELECT DISTINCT session_id FROM messages") == [("free",)]
    assert plain("SELECT count(*) FROM memories") == [(0,)]


async def test_each_thread_has_a_number_of_its_own(store: Driver, plain: Plain) -> None:
    for thread_id in ("b", "a", "c", "b", "c"):
        await talk(store, thread_id)
    assert plain("SELECT scid, id FROM conversation_state ORDER BY id") == [("b", 1), ("a", 2), ("c", 3)]
    plain("DELETE FROM threads WHERE id = 'a'")
    await talk(store, "d")
    assert plain("SELECT scid, id FROM conversation_state ORDER BY id") == [("b", 1), ("c", 3), ("d", 4)]
    with pytest.raises((sqlite3.IntegrityError, psycopg.errors.UniqueViolation), match="number"):
        insert(plain, "threads", id="e", number=1, created_at="2026-01-01", updated_at="2026-01-01")
    insert(plain, "threads", id="e", number=99, created_at="2026-01-01", updated_at="2026-01-01")
    assert plain("SELECT id FROM conversation_state WHERE scid = 'e'") == [(5,)]
