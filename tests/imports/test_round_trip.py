"""Each column of the five documents comes back as it was, or it is named here with the reason why not."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.imports.conftest import Fetch, Take
from tests.imports.old import STATE, THREAD, agents, conversations, memory, states

from longthread.model.fold import state_of
from longthread.store import log, summaries
from longthread.store.driver import Driver

ERROR = {"step": 3, "error": "no such column: 发射", "timestamp": "2024-01-01T10:02:00"}
GONE_ON: Mapping[str, Any] = {
    **STATE,
    "question": "另一个问题？",
    "candidate_tables": ["aircraft_info", "发射场"],
    "error_history": [ERROR, {"error": "timeout"}],
    "last_error": {**ERROR, "retried": True},
    "known_samples": {"aircraft_info": [{"id": 1}]},
    "known_schemas": {"aircraft_info": {"columns": [{"name": "id", "type": "INTEGER"}]}},
    "done": False,
    "answer": {"ok": False, "error": "max_steps"},
    "max_steps": 7,
}
NOT_SAME = {
    "conversation_steps.id": "the thread's number, and the step's",
    "conversations.state_data": "compared field by field",
    "conversation_state.id": "the thread's number in this database",
    "messages.parent_id": "a first message's: the import makes one line of messages that name none",
    "sessions.started_at": "the same moment as created_at; another one is in the metadata",
    "agents.updated_at": "a trigger sets it",
}


def plain(value: Any) -> Any:
    """A value of either backend: JSON is read, times are in UTC, vectors are there or not."""
    if isinstance(value, bytes | memoryview):
        return "vector"
    if isinstance(value, str) and value[:2] == "[0" and len(value) > 1000:
        return "vector"
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
    if isinstance(value, str):
        if value[:1] in ("{", "["):
            return plain(json.loads(value))
        if len(value) > 9 and value[4:5] == "-" and value[7:8] == "-":
            return plain(datetime.fromisoformat(value))
        return value
    if isinstance(value, list):  # a call's arguments are JSON in a text, which is written without spaces
        return [json.loads(re.sub(r'\\": \\"', r'\\":\\"', json.dumps(each))) for each in value]
    return value if value is None or isinstance(value, int | float | dict) else str(value)


async def compare(fetch: Fetch, table: str, rows: list[dict[str, Any]], key: str) -> None:
    found = {str(row[key]): row for row in await fetch(f"SELECT * FROM {table}")}
    assert rows
    for row in rows:
        for name, value in row.items():
            if f"{table}.{name}" not in NOT_SAME:
                assert plain(found[str(row[key])][name]) == plain(value), f"{table}.{name}"


@pytest.mark.parametrize("state", [STATE, GONE_ON], ids=["document", "other"])
async def test_document_000(take: Take, fetch: Fetch, store: Driver, tmp_path: Path, state: Mapping[str, Any]) -> None:
    path = conversations(tmp_path / "old.db", {THREAD: state})
    with closing(sqlite3.connect(path)) as old:
        old.row_factory = sqlite3.Row
        rows = [dict(row) for row in old.execute("SELECT * FROM conversations")]
    report = await take(path)
    assert (report.left, dict(report.notes)) == ([], {})
    await compare(fetch, "conversations", rows, "thread_id")
    [row] = await fetch("SELECT state_data FROM conversations")
    now = json.loads(row["state_data"]) if isinstance(row["state_data"], str) else row["state_data"]
    dated = {"steps", "sql_history"}  # their times have a zone
    assert {key: now[key] for key in now.keys() - dated} == {key: state[key] for key in now.keys() - dated}
    for name in dated:
        assert [{**each, "timestamp": each["timestamp"][:19]} for each in now[name]] == state[name]
    async with store.reading() as tx:  # the fold says what the view says
        thread = await log.find_thread(tx, THREAD, user_id="default")
        entries = await log.branch(tx, THREAD, thread.tip, limit=100)
        assert state_of(entries, await summaries.find_compressed(tx, THREAD)) == now


async def test_what_came_with_the_state_holds_until_it_goes_on(
    take: Take, fetch: Fetch, store: Driver, tmp_path: Path
) -> None:
    from longthread.model.entry import Draft

    await take(conversations(tmp_path / "old.db", {THREAD: GONE_ON}))
    async with store.writing() as tx:
        await log.extend(tx, THREAD, [Draft("new", "user", "And now?")])
    [row] = await fetch("SELECT state_data FROM conversations")
    now = json.loads(row["state_data"]) if isinstance(row["state_data"], str) else row["state_data"]
    assert (now["question"], now["last_error"], now["answer"]) == ("And now?", None, None)


async def test_document_002(take: Take, fetch: Fetch, old_url: str) -> None:
    agents(old_url)
    tables = {"agents": "id", "skills": "id", "tools": "id", "sessions": "id", "messages": "id", "memories": "id"}
    with psycopg.connect(old_url, autocommit=True, row_factory=psycopg.rows.dict_row) as old:
        old.execute("UPDATE skills SET is_builtin = TRUE, description = 'theirs'")
        old.execute("UPDATE tools SET is_active = FALSE WHERE name = 'run_python'")
        rows = {name: old.execute(f"SELECT * FROM {name}".encode()).fetchall() for name in tables}
    assert (await take(old_url)).left == []
    for name, key in tables.items():
        await compare(fetch, name, rows[name], key)
    parents = {str(row["id"]): row["parent_id"] for row in rows["messages"] if row["parent_id"] is not None}
    now = {row["id"]: row["parent_id"] for row in await fetch("SELECT id, parent_id FROM messages")}
    assert {id_: now[id_] for id_ in parents} == {id_: str(parent) for id_, parent in parents.items()}


async def test_document_003(take: Take, fetch: Fetch, tmp_path: Path) -> None:
    history = [{"role": "user", "content": "开始新对话"}, {"role": "assistant", "content": "你好!", "odd": [1.0, None]}]
    path = states(tmp_path / "old.db", {"conv_1": history})
    with closing(sqlite3.connect(path)) as old:
        old.row_factory = sqlite3.Row
        rows = [dict(row) for row in old.execute("SELECT * FROM conversation_state")]
    await take(path)
    await compare(fetch, "conversation_state", rows, "scid")


async def test_document_004(take: Take, fetch: Fetch, old_url: str) -> None:
    memory(old_url, THREAD)
    tables = {"thread_activity": "thread_id", "conversation_summaries": "thread_id", "memory_vectors": "id"}
    tables |= {"memory_topics": "topic"}
    with psycopg.connect(old_url, autocommit=True, row_factory=psycopg.rows.dict_row) as old:
        rows = {name: old.execute(f"SELECT * FROM {name}".encode()).fetchall() for name in tables}
    assert (await take(old_url)).left == []
    for name, key in tables.items():
        await compare(fetch, name, rows[name], key)


@pytest.mark.parametrize(
    ("chunk", "stands"),
    [
        ("user: 预算是700元\nai: 好的，我记住了", False),
        ("user: 预算是700元\nai: 好的，我记住了。另外，密码锁的编号是4711", True),
        ("user: The budget is 700\nai: Noted, and the door is 4711", True),
        ("The budget is", False),
        ("00", True),
        ("user: 预算是700元\nai: 不", True),
        ("user: The budget is 700\nai: 👎", True),
        ("budget is 7", True),
        ("预算：700", True),
        ("Human:  The  budget is 700 \n\nAI: Noted", False),
    ],
)
async def test_a_chunk_with_words_that_stand_nowhere_gets_an_entry(
    take: Take, fetch: Fetch, store: Driver, old_url: str, chunk: str, stands: bool
) -> None:
    from longthread.model.entry import Draft

    async with store.writing() as tx:
        await log.create_thread(tx, THREAD, user_id="default")
        said = ("预算是700元", "好的，我记住了", "The budget is 700", "Noted")
        await log.extend(tx, THREAD, [Draft(str(n), "user", text) for n, text in enumerate(said)])
    memory(old_url, THREAD)
    with psycopg.connect(old_url, autocommit=True) as old:
        old.execute("UPDATE memory_vectors SET chunk = %s WHERE id LIKE '%%c1'", [chunk])
    await take(old_url)
    rows = await fetch("SELECT text FROM entries WHERE metadata LIKE '%chunk%'")
    assert (chunk in {row["text"] for row in rows}) is stands
