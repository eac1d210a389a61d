"""A `conversation_state` of document 003 comes along, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from tests.imports.conftest import Fetch, Take
from tests.imports.old import states

from longthread.langgraph.message_codec import message_of
from longthread.store import log
from longthread.store.driver import Driver

pytestmark = pytest.mark.one_backend

THINKING = {"type": "thinking", "thinking": "Let me see… 让我想想", "signature": "EqQBCkYIBxgCKkD/+=="}
USE = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.py"}}
RESULT = {
    "type": "tool_result",
    "tool_use_id": "toolu_1",
    "content": [{"type": "text", "text": "print(1)"}],
    "is_error": True,
}
HISTORY: list[Any] = [
    {"role": "system", "content": "Client: claude_code"},
    {"role": "user", "content": [{"type": "text", "text": "读 a.py", "cache_control": {"type": "ephemeral"}}]},
    {"role": "assistant", "content": [THINKING, {"type": "text", "text": "Reading."}, USE]},
    {"role": "user", "content": [RESULT, {"type": "text", "text": "go on"}]},
    {
        "role": "assistant",
        "content": [{"type": "redacted_thinking", "data": "Emw="}, {"type": "text", "text": "It prints 1."}],
    },
]


async def history_of(fetch: Fetch, scid: str) -> list[Any]:
    query = "SELECT CAST(authoritative_history AS TEXT) AS history FROM conversation_state WHERE scid = :scid"
    [row] = await fetch(query, scid=scid)
    found: list[Any] = json.loads(row["history"])
    return found


async def test_the_history_comes_back_with_its_signatures(take: Take, fetch: Fetch, tmp_path: Path) -> None:
    report = await take(states(tmp_path / "old.db", {"conv_1": HISTORY}))
    assert (report.left, report.there, report.here["messages"]) == ([], report.here, 5)
    assert await history_of(fetch, "conv_1") == HISTORY
    [payload] = await fetch("SELECT payload FROM entries WHERE role = 'assistant' AND tool_calls IS NOT NULL")
    assert json.dumps(THINKING, ensure_ascii=False, separators=(",", ":")).encode() in bytes(payload["payload"])


async def test_what_a_model_is_given_of_it(take: Take, store: Driver, tmp_path: Path) -> None:
    await take(states(tmp_path / "old.db", {"conv_1": HISTORY}))
    async with store.reading() as tx:
        entries = await log.branch(tx, "conv_1", (await log.position(tx, "conv_1"))[0])
    _, _, call, result, *_ = [message_of(entry) for entry in entries]
    assert isinstance(call, AIMessage) and call.content == HISTORY[2]["content"]
    assert [each["args"] for each in call.tool_calls] == [{"path": "a.py"}]
    assert isinstance(result, ToolMessage) and (result.tool_call_id, result.status) == ("toolu_1", "error")


async def test_what_else_the_row_says(take: Take, fetch: Fetch, tmp_path: Path) -> None:
    report = await take(states(tmp_path / "old.db", {"conv_1": HISTORY}), user="ada")
    query = "SELECT client_type, last_signature, access_count, CAST(expires_at AS TEXT) AS ends FROM conversation_state"
    [row] = await fetch(query)
    assert (row["client_type"], row["last_signature"], row["access_count"]) == ("claude_code", "sig_abc123", 7)
    assert row["ends"].startswith("2036-01-17")
    assert [row["user_id"] for row in await fetch("SELECT user_id FROM threads")] == ["ada"]
    assert [row["title"] for row in await fetch("SELECT title FROM threads")] == ["读 a.py"]
    assert report.notes == {}


OPENAI: list[Any] = [
    {"role": "user", "content": "Hello", "name": "ada"},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "hm",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "天气"}'}},
            {"id": "c2", "type": "function", "function": {"name": "look", "arguments": '{"at": '}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    {"role": "developer", "content": "be brief"},
]


async def test_openai_s_form(take: Take, store: Driver, tmp_path: Path) -> None:
    assert (await take(states(tmp_path / "old.db", {"conv_2": OPENAI}))).left == []
    async with store.reading() as tx:
        entries = await log.branch(tx, "conv_2", (await log.position(tx, "conv_2"))[0])
    assert [(entry.role, entry.text) for entry in entries] == [
        ("user", "Hello"), ("assistant", ""), ("tool", "sunny"), ("system", "be brief")
    ]  # fmt: skip
    call = message_of(entries[1])
    assert isinstance(call, AIMessage) and call.additional_kwargs == {"reasoning_content": "hm"}
    assert [each["args"] for each in call.tool_calls] == [{"at": "天气"}]
    assert [each["args"] for each in call.invalid_tool_calls] == ['{"at": ']


@pytest.mark.parametrize(
    ("history", "why"),
    [
        ("not json", "conversation_state.authoritative_history of conv: Expecting value"),
        ({"a": 1}, "conversation_state.authoritative_history of conv: it is no JSON list"),
    ],
)
async def test_what_cannot_be_taken_is_named(take: Take, tmp_path: Path, history: Any, why: str) -> None:
    report = await take(states(tmp_path / "old.db", {"conv": history, "good": HISTORY}))
    assert len(report.left) == 1 and why in report.left[0]
    assert report.here["messages"] == 5


async def test_what_is_no_message_of_a_known_form_comes_too(take: Take, fetch: Fetch, tmp_path: Path) -> None:
    history = ["x", {"role": "narrator", "content": "x"}, {"content": 1}, *OPENAI]
    report = await take(states(tmp_path / "old.db", {"conv": history}))
    assert (report.left, report.here["messages"]) == ([], 7)
    assert await history_of(fetch, "conv") == history


async def test_a_client_that_the_document_does_not_name(take: Take, fetch: Fetch, tmp_path: Path) -> None:
    report = await take(states(tmp_path / "old.db", {"conv": HISTORY}, client="windsurf"))
    [row] = await fetch("SELECT client_type FROM conversation_state")
    assert (row["client_type"], report.left) == ("unknown", [])
    assert any("windsurf" in note for note in report.notes)
    assert await fetch("SELECT id FROM threads WHERE metadata LIKE '%windsurf%'")


async def test_one_whose_time_is_over_is_taken_and_said(take: Take, fetch: Fetch, tmp_path: Path) -> None:
    report = await take(states(tmp_path / "old.db", {"conv": HISTORY}, ends="2026-01-18T10:00:00"))
    assert (report.left, list(report.notes.values())) == ([], [1])
    assert [row["expires_at"][:10] for row in await fetch("SELECT expires_at FROM threads")] == ["2026-01-18"]
