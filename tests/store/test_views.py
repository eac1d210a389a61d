"""What the views of the documents' names say of a conversation."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from tests.store.conftest import Plain
from tests.store.talk import NOTE, THINKING, explored, payload, talk

from longthread.model.entry import Draft, ToolCall
from longthread.model.fold import state_of
from longthread.store import log
from longthread.store.driver import Driver


def loaded(value: Any) -> Any:
    """JSON, which only PostgreSQL's driver has read already."""
    return json.loads(value) if isinstance(value, str) else value


def moment(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)


def explain(store: Driver) -> str:
    return "EXPLAIN QUERY PLAN" if store.dialect == "sqlite" else "EXPLAIN"


async def test_conversations_are_threads(store: Driver, plain: Plain) -> None:
    await talk(store, "t", user_id="me")
    plain("UPDATE threads SET tool_categories = '[\"database\"]', tags = '[\"航天\"]'")
    [row] = plain("SELECT thread_id, user_id, title, tool_categories, tags, created_at, updated_at FROM conversations")
    assert row[:3] == ("t", "me", "运载火箭有哪些？")
    assert (loaded(row[3]), loaded(row[4])) == (["database"], ["航天"])
    async with store.reading() as tx:
        thread = await log.find_thread(tx, "t", user_id="me")
    assert (moment(row[5]), moment(row[6])) == (thread.created_at, thread.updated_at)
    assert plain("SELECT thread_id, label FROM thread_activity") == [("t", "运载火箭有哪些？")]
    assert moment(plain("SELECT last_active_at FROM thread_activity")[0][0]) == thread.updated_at


async def test_a_list_of_conversations_does_not_read_what_they_said(store: Driver, plain: Plain) -> None:
    for sql, reads in (
        ("SELECT thread_id, title, updated_at FROM conversations WHERE user_id = 'u' ORDER BY updated_at DESC", False),
        ("SELECT count(*) FROM conversations", False),
        ("SELECT scid, client_type, access_count, last_signature FROM conversation_state", False),
        ("SELECT * FROM sessions WHERE agent_id = 'a'", False),
        ("SELECT state_data FROM conversations", True),
    ):
        plan = "\n".join(str(row) for row in plain(f"{explain(store)} {sql}"))
        assert ("entries" in plan) is reads, plan


async def test_one_conversations_steps_are_found_without_reading_the_others(store: Driver, plain: Plain) -> None:
    branch = await talk(store, "t")
    await talk(store, "other")
    wanted = state_of(branch)["steps"]
    rows = plain(
        "SELECT id, step_index, step_data, created_at FROM conversation_steps WHERE thread_id = 't' ORDER BY step_index"
    )
    assert [loaded(row[2]) for row in rows] == wanted
    assert [row[1] for row in rows] == [0, 1, 2]
    assert [moment(row[3]) for row in rows] == [datetime.fromisoformat(step["timestamp"]) for step in wanted]
    assert len(set(plain("SELECT id FROM conversation_steps"))) == 6
    if store.dialect == "postgres":
        plain("SET enable_seqscan = off")  # It reads so small a table whole.
    rows = plain(f"{explain(store)} SELECT * FROM conversation_steps WHERE thread_id = 't'")
    plan = [" ".join(map(str, row)) for row in rows]
    assert not [line for line in plan if line.endswith("SCAN t") or "Seq Scan on threads" in line]


async def test_messages_are_the_entries_of_all_branches(store: Driver, plain: Plain) -> None:
    branch = await talk(store, "t")
    rows = plain("SELECT id, parent_id, role, content, tool_call_id, tokens_used, latency_ms FROM messages")
    found = {row[0]: row[1:] for row in rows}
    assert len(found) == 7
    assert found["system"][0] is None
    assert found["again"][0] == "system"
    assert [found[entry.id][0] for entry in branch[1:]] == [entry.id for entry in branch[:-1]]
    assert found["calls"][1:] == ("assistant", "Let me look.", None, 20, 900)
    assert found["r1"][3] == "c1"
    notes = {row[0]: loaded(row[1]) for row in plain("SELECT id, metadata FROM messages")}
    assert (notes["ask"], notes["system"]) == (NOTE, {})


async def test_tool_calls_have_openais_form(store: Driver, plain: Plain) -> None:
    await talk(store, "t")
    calls = [
        (row[0], loaded(row[1])) for row in plain("SELECT id, tool_calls FROM messages WHERE tool_calls IS NOT NULL")
    ]
    assert calls == [
        (
            "calls",
            [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "describe_table", "arguments": '{"table":"rockets"}'},
                },
                {
                    "id": "c2",
                    "type": "function",
                    "function": {"name": "run_sql", "arguments": '{"sql":"SELECT \'深\'"}'},
                },
            ],
        )
    ]


async def test_sessions_are_threads(store: Driver, plain: Plain) -> None:
    await talk(store, "t")
    plain("UPDATE threads SET status = 'completed', metadata = '{\"a\": 1}', ended_at = '2026-02-01T00:00:00+00:00'")
    names = "id, agent_id, user_id, status, title, metadata, started_at, ended_at, created_at"
    [row] = plain(f"SELECT {names} FROM sessions")
    assert row[:5] == ("t", None, "u", "completed", "运载火箭有哪些？")
    assert loaded(row[5]) == {"a": 1}
    assert moment(row[6]) == moment(row[8])
    assert moment(row[7]) == datetime.fromisoformat("2026-02-01T00:00:00+00:00")


async def test_conversation_state_tells_the_client_and_its_history_whole(store: Driver, plain: Plain) -> None:
    await talk(store, "t")
    await talk(store, "other")
    columns = "thread_id, client_type, last_signature, access_count"
    plain(f"INSERT INTO thread_clients ({columns}) VALUES ('t', 'cursor', 'c2ln', 3)")
    plain("UPDATE threads SET expires_at = '2030-01-01T00:00:00+00:00' WHERE id = 't'")
    names = "client_type, last_signature, access_count, expires_at, authoritative_history"
    [row] = plain(f"SELECT {names} FROM conversation_state WHERE scid = 't'")
    assert row[:3] == ("cursor", "c2ln", 3)
    assert moment(row[3]) == datetime.fromisoformat("2030-01-01T00:00:00+00:00")
    history = loaded(row[4])
    assert [message["role"] for message in history] == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert history[1] == {"role": "user", "content": "运载火箭有哪些？"}
    assert history[2]["content"] == THINKING
    assert [call["id"] for call in history[2]["tool_calls"]] == ["c1", "c2"]
    assert list(history[3]) == ["role", "content", "tool_call_id", "name"]
    [row] = plain(
        "SELECT client_type, last_signature, access_count, expires_at FROM conversation_state WHERE scid = 'other'"
    )
    assert row == ("unknown", None, 0, None)


async def test_what_retention_has_left_begins_the_branch(store: Driver, plain: Plain) -> None:
    branch = await talk(store, "t")
    plain("DELETE FROM entries WHERE thread_id = 't' AND seq < 3")
    plain("UPDATE threads SET first_seq = 3")
    [(state, history)] = plain(
        "SELECT c.state_data, s.authoritative_history "
        "FROM conversations c JOIN conversation_state s ON s.scid = c.thread_id"
    )
    assert loaded(state) == state_of(branch[2:])
    assert len(loaded(history)) == 4
    assert plain("SELECT parent_id FROM messages WHERE id = 'calls'") == [(None,)]
    plain("UPDATE threads SET first_seq = 99")
    assert loaded(plain("SELECT state_data FROM conversations")[0][0]) == state_of([])


async def test_a_state_has_the_summary_that_there_is(store: Driver, plain: Plain) -> None:
    branch = await talk(store, "t")
    names = "thread_id, summary, message_count, config_hash"
    plain(f"INSERT INTO conversation_summaries ({names}) VALUES (?, ?, ?, ?)", ["t", "摘要", 2, "h"])
    state = loaded(plain("SELECT state_data FROM conversations")[0][0])
    summary = {"compressed_summary": "摘要", "compressed_message_count": 2, "compressed_config_hash": "h"}
    assert state == state_of(branch) | summary


async def test_a_whole_second_is_written_as_the_fold_writes_it(store: Driver, plain: Plain) -> None:
    await talk(store, "t")
    plain("UPDATE entries SET created_at = '2026-01-01T00:00:00.000000+00:00'")
    async with store.reading() as tx:
        branch = await log.branch(tx, "t", 6)
    state = loaded(plain("SELECT state_data FROM conversations")[0][0])
    assert state == state_of(branch)
    assert state["steps"][0]["timestamp"] == "2026-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    "draft",
    [
        Draft("x", "assistant", "x", [ToolCall("c", "run_sql", {"limit": float("nan")})]),
        Draft("x", "user", "x", metadata={"max_steps": float("inf")}),
        Draft("x", "tool", '{"ok": true, "data": NaN}', tool_call_id="c1"),
        Draft("x", "user", "x", payload=b"\x00\xff raw"),
        Draft("x", "user", "x", payload=b"{\xff"),
        Draft("x", "user", "x", payload=b'{"content": 3}'),
        Draft("x", "user", "x", payload=b""),
        Draft("x", "user", "x\ufffd", payload=payload(content="x\x00")),
    ],
)
async def test_no_entry_keeps_a_conversation_from_being_read(store: Driver, plain: Plain, draft: Draft) -> None:
    async with store.writing() as tx:
        await log.create_thread(tx, "t", user_id="u")
        await log.extend(tx, "t", [*explored(), draft])
    state = loaded(plain("SELECT state_data FROM conversations")[0][0])
    assert state["messages"][0]["content"] == "运载火箭有哪些？"
    history = loaded(plain("SELECT authoritative_history FROM conversation_state")[0][0])
    assert (history[-1]["role"], history[-1]["content"][0]) == (draft.role, draft.text[0])
    assert len(plain("SELECT * FROM messages")) == 7
    assert len(plain("SELECT * FROM conversation_steps")) == 3


async def test_a_character_that_postgresql_cannot_hold_is_replaced_there(store: Driver, plain: Plain) -> None:
    # The pair is a character; an escaped backslash before it makes no escape of what follows.
    text = (
        r'{"ok": true, "data": {"nul": "a\u0000b", "half": "\ud800-\udc00", "pair": "\ud83d\ude80", "no": "\\u0000"}}'
    )
    call = Draft("c", "assistant", "", [ToolCall("c", "look", {"nul": "\x00"})])
    async with store.writing() as tx:
        await log.create_thread(tx, "t", user_id="u")
        await log.extend(tx, "t", [call, Draft("r", "tool", text, tool_call_id="c")])
    [step] = loaded(plain("SELECT state_data FROM conversations")[0][0])["steps"]
    data = step["observation"]["data"]
    assert (data["pair"], data["no"], step["content"]) == ("🚀", r"\u0000", text)
    shown = ("a\ufffdb", "\ufffd-\ufffd", "\ufffd") if store.dialect == "postgres" else ("a\0b", "\ud800-\udc00", "\0")
    assert (data["nul"], data["half"], step["args"]["nul"]) == shown
    assert loaded(plain("SELECT metadata FROM messages WHERE id = 'c'")[0][0]) == {}
    [(calls,)] = plain("SELECT tool_calls FROM messages WHERE id = 'c'")
    assert loaded(loaded(calls)[0]["function"]["arguments"])["nul"] == shown[2]
