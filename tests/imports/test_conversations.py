"""A `conversations.db` of document 000 comes along: what its `state_data` said, ours says."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.imports.conftest import Fetch, Take
from tests.imports.old import ANSWER, ROCKETS, STATE, THREAD, conversations

from longthread.errors import NothingToImport
from longthread.store import log
from longthread.store.driver import Driver

pytestmark = pytest.mark.one_backend

QUESTION = "Which sites?"
ERROR = {"ok": False, "error": {"type": "json_parse_error", "raw_response": "sure!"}}
TURNS: dict[str, Any] = {
    **STATE,
    "messages": [
        *STATE["messages"],
        {"role": "user", "content": QUESTION, "timestamp": "2024-01-01T10:02:00"},
        {"role": "assistant", "content": "Jiuquan."},
    ],
    "question": QUESTION,
    "steps": [
        *STATE["steps"],
        {
            "step_index": 1,
            "step_type": "finish",
            "thought": "done",
            "action": "finish",
            "args": {"answer": ANSWER},
            "observation": None,
            "content": ANSWER,
            "timestamp": "2024-01-01T10:01:30",
        },
        {
            "step_index": 2,
            "step_type": "error",
            "thought": "",
            "action": "json_parse_error",
            "args": {},
            "observation": ERROR,
            "content": json.dumps(ERROR),
            "timestamp": "2024-01-01T10:02:10",
        },
        {
            "step_index": 3,
            "step_type": "action",
            "thought": "look",
            "action": "run_sql",
            "args": {"sql": "SELECT 1"},
            "observation": {"ok": True, "data": {"rows": [[1]]}},
            "content": "raw",
            "timestamp": "2024-01-01T10:02:20",
            "more": ["x"],
        },
    ],
    "sql_history": [
        *STATE["sql_history"],
        {"sql": "SELECT 1", "result": {"ok": True, "data": {"rows": [[1]]}}, "timestamp": "2024-01-01T10:02:20"},
    ],
    "known_samples": {"aircraft_info": {"rows": [["1", "长征"]]}},
    "answer": {"ok": True, "data": "Jiuquan."},
    "error_history": [{"action": "json_parse_error", "error": ERROR["error"], "timestamp": "2024-01-01T10:02:10"}],
}


async def state_of(fetch: Fetch, thread_id: str) -> dict[str, Any]:
    query = "SELECT CAST(state_data AS TEXT) AS state FROM conversations WHERE thread_id = :id"
    [row] = await fetch(query, id=thread_id)
    found: dict[str, Any] = json.loads(row["state"])
    return found


def dated(items: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Items with the zone that times have here."""
    return [dict(item) | {"timestamp": f"{item['timestamp']}+00:00"} for item in items]


def plain(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages with the documented fields."""
    return [{key: message[key] for key in ("role", "content")} for message in messages]


@pytest.mark.parametrize("state", [STATE, TURNS], ids=["document", "turns"])
async def test_the_state_comes_back(take: Take, fetch: Fetch, tmp_path: Path, state: dict[str, Any]) -> None:
    report = await take(conversations(tmp_path / "old.db", {THREAD: state}))
    assert (report.left, report.there, report.already["conversations"]) == ([], report.here, 0)
    now = await state_of(fetch, THREAD)
    assert now["messages"] == plain(state["messages"])
    same = ("question", "known_tables", "known_schemas", "done", "answer", "max_steps", "candidate_tables")
    assert {key: now[key] for key in same} == {key: state[key] for key in same}
    assert now["steps"] == dated(state["steps"])
    assert now["sql_history"] == dated(state["sql_history"])
    assert now["error_history"] == state["error_history"]
    compressed = [key for key in STATE if key.startswith("compressed_")]
    assert {key: now[key] for key in compressed} == {key: state[key] for key in compressed}
    for table, data in state["known_samples"].items():
        assert now["known_samples"][table]["rows"] == data["rows"]


async def test_a_step_as_ours_is_told_by_its_entries_alone(take: Take, fetch: Fetch, tmp_path: Path) -> None:
    observation = {"ok": True, "data": {"tables": ["a"]}}
    step = STATE["steps"][0] | {"observation": observation, "content": json.dumps(observation)}
    await take(conversations(tmp_path / "old.db", {THREAD: {**STATE, "steps": [step], "known_tables": ["a"]}}))
    notes = await fetch("SELECT metadata FROM entries WHERE role = 'tool' ORDER BY seq")
    assert "imported_step" not in (notes[0]["metadata"] or "")
    assert (await state_of(fetch, THREAD))["steps"] == dated([step])


async def test_what_is_kept_beside_the_state(take: Take, fetch: Fetch, tmp_path: Path) -> None:
    report = await take(conversations(tmp_path / "old.db", {THREAD: {**STATE, "plan": ["next"]}}, user="ada"))
    [row] = await fetch("SELECT * FROM threads")
    assert (row["user_id"], row["title"], row["tags"]) == ("ada", ROCKETS, '["rockets"]')
    assert row["tool_categories"] == '["database"]'
    assert row["created_at"].startswith("2024-01-01T10:00:00") and row["updated_at"].startswith("2024-01-01T10:05:00")
    assert json.loads(row["metadata"]) == {"state_data": {"plan": ["next"]}}
    assert any("`plan`" in note for note in report.notes)


async def test_a_damaged_state_is_named_and_the_rest_goes_on(take: Take, fetch: Fetch, tmp_path: Path) -> None:
    path = conversations(
        tmp_path / "old.db",
        {
            "cut": '{"question": "a',
            "list": "[]",
            "parts": {"messages": ["x", {"role": "user", "content": "hi"}]},
            "ok": STATE,
        },
    )
    report = await take(path)
    assert [text.partition(":")[0] for text in report.left] == [
        "conversations.state_data of thread cut",
        "conversations.state_data of thread list",
        "conversations.state_data of thread parts, messages[0]",
    ]
    assert (report.there["conversations"], report.here["conversations"]) == (4, 2)
    assert (report.there["messages"], report.here["messages"]) == (4, 3)
    assert {row["id"] for row in await fetch("SELECT id FROM threads")} == {"parts", "ok"}


async def test_steps_of_the_table_of_steps(take: Take, fetch: Fetch, tmp_path: Path) -> None:
    path = conversations(tmp_path / "old.db", {THREAD: {**STATE, "steps": []}, "both": STATE})
    step = STATE["steps"][0]
    with closing(sqlite3.connect(path)) as connection, connection:
        for thread_id, data in ((THREAD, json.dumps(step)), ("both", json.dumps(step)), ("both", "{")):
            connection.execute(
                "INSERT INTO conversation_steps (thread_id, step_index, step_data) VALUES (?, 0, ?)", (thread_id, data)
            )
    report = await take(path)
    assert [text.partition(",")[0] for text in report.left] == ["conversation_steps.step_data of row 3"]
    assert (report.there["rows of conversation_steps"], report.here["rows of conversation_steps"]) == (3, 2)
    for thread_id in (THREAD, "both"):
        assert (await state_of(fetch, thread_id))["steps"] == dated([step])


async def test_taken_twice_it_is_there_once_and_what_is_new_comes(take: Take, fetch: Fetch, tmp_path: Path) -> None:
    path = conversations(tmp_path / "old.db", {THREAD: STATE})
    await take(path)
    before = await fetch("SELECT * FROM entries ORDER BY seq")
    report = await take(path)
    assert report.already["conversations"] == 1
    assert await fetch("SELECT * FROM entries ORDER BY seq") == before
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE conversations SET state_data = ?", (json.dumps(TURNS),))
    report = await take(path)
    assert (report.left, report.already["conversations"]) == ([], 0)
    assert (await state_of(fetch, THREAD))["messages"] == plain(TURNS["messages"])


async def test_a_thread_that_went_on_here_is_left(take: Take, store: Driver, fetch: Fetch, tmp_path: Path) -> None:
    path = conversations(tmp_path / "old.db", {THREAD: STATE})
    await take(path)
    async with store.writing() as tx:
        entry = log.Draft(id="ours", role="user", text="and then?")
        await log.extend(tx, THREAD, [entry])
    assert (await take(path)).left == []
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE conversations SET state_data = ?", (json.dumps(TURNS),))
    [left] = (await take(path)).left
    assert "it has gone on here" in left
    assert await fetch("SELECT id FROM entries WHERE id = 'ours'")


async def test_somebody_elses_thread_is_not_touched(take: Take, store: Driver, tmp_path: Path) -> None:
    async with store.writing() as tx:
        await log.create_thread(tx, THREAD, user_id="bob")
    report = await take(conversations(tmp_path / "old.db", {THREAD: STATE}))
    assert report.left == [f"thread {THREAD}: its id is taken by another user's thread"]
    assert report.here["conversations"] == 0


async def test_the_old_file_stays_as_it_is(take: Take, tmp_path: Path) -> None:
    path = conversations(tmp_path / "old.db", {THREAD: STATE})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("UPDATE conversations SET title = 'in the log'")
        connection.commit()
        before = path.read_bytes(), path.with_name("old.db-wal").read_bytes()
        report = await take(path)
        assert (path.read_bytes(), path.with_name("old.db-wal").read_bytes()) == before
    assert report.here["conversations"] == 1


async def test_words_that_no_database_holds(take: Take, fetch: Fetch, tmp_path: Path) -> None:
    state = {
        "messages": [{"role": "user", "content": "a\x00b\ud800"}],
        "sql_history": [{"sql": "x", "result": float("nan")}],
    }
    report = await take(conversations(tmp_path / "old.db", {THREAD: state}))
    assert report.left == []
    assert (await state_of(fetch, THREAD))["messages"][0]["content"] == "a\ufffdb\ufffd"


async def test_nothing_to_take_is_an_error(take: Take, tmp_path: Path) -> None:
    with pytest.raises(NothingToImport, match="conversations of document 000, and no rows"):
        await take(conversations(tmp_path / "old.db", {}))


async def test_fields_of_other_forms_are_kept_or_named(take: Take, fetch: Fetch, tmp_path: Path) -> None:
    odd = {
        "sql_history": [{"query": "b"}, "c"],
        "known_samples": ["x"],
        "max_steps": "12",
        "steps": [{"action": "x y", "observation": "text", "timestamp": "yesterday"}, {"step_type": "thought"}],
    }
    report = await take(conversations(tmp_path / "old.db", {THREAD: STATE | odd}))
    assert [text.rpartition(", ")[2].partition(":")[0] for text in report.left] == ["sql_history[1]", "sql_history"]
    [row] = await fetch("SELECT metadata FROM threads")
    assert json.loads(row["metadata"]) == {}
    now = await state_of(fetch, THREAD)
    assert (now["known_samples"], now["max_steps"]) == (["x"], "12")
    first, second = now["steps"]
    assert (first["action"], first["imported_timestamp"], second["step_type"]) == ("x y", "yesterday", "thought")
    assert len(await fetch("SELECT created_at FROM conversation_steps")) == 2


async def test_a_state_that_was_written_as_json_twice(take: Take, fetch: Fetch, tmp_path: Path) -> None:
    await take(conversations(tmp_path / "old.db", {THREAD: json.dumps(json.dumps(STATE))}))
    assert (await state_of(fetch, THREAD))["question"] == ROCKETS


async def test_a_question_that_went_on_is_none_of_its_own(take: Take, fetch: Fetch, tmp_path: Path) -> None:
    more = [{"role": "user", "content": "好的，继续"}, {"role": "assistant", "content": ANSWER}]
    messages = [STATE["messages"][0], {"role": "assistant", "content": "so far"}, *more]
    report = await take(conversations(tmp_path / "old.db", {THREAD: STATE | {"messages": messages}}))
    assert (await state_of(fetch, THREAD))["question"] == ROCKETS
    assert report.notes == {}
