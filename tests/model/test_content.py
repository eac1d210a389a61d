"""What a message says beside its text, by the payload of its entry."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from longthread.model.content import extra_text


def beside(**fields: Any) -> str:
    return extra_text(json.dumps(fields).encode())


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text-plain", "text": "the walrus"},
        {"type": "document", "title": "the walrus", "source": {"type": "url", "url": "https://example.org"}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "the walrus"}},
        {"type": "file", "file": {"filename": "the walrus.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
        {"type": "file", "base64": b64encode(b"the walrus").decode(), "mime_type": "text/csv"},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "the walrus"}},
        {
            "type": "web_search_tool_result",
            "content": [{"type": "web_search_result", "title": "the walrus", "encrypted_content": "abc"}],
        },
        {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"query": "the walrus"}},
        {"type": "server_tool_call", "id": "s", "name": "web_search", "args": {"query": "the walrus"}},
        {"type": "server_tool_result", "tool_call_id": "s", "output": [{"title": "the walrus"}]},
        {"type": "text", "text": "It is.", "annotations": [{"type": "url_citation", "title": "the walrus"}]},
        {"type": "non_standard", "value": {"said": "the walrus"}},
    ],
)
def test_blocks_say_what_can_be_read_of_them(block: dict[str, Any]) -> None:
    assert "the walrus" in beside(content=[block])
    assert "the walrus" in beside(content=["It is", {"type": "text", "text": "so."}, block])
    assert "abc" not in beside(content=[block])


@pytest.mark.parametrize(
    "fields",
    [
        {"content": "the walrus"},
        {"content": [{"type": "text", "text": "the walrus"}]},
        {"content": [{"type": "thinking", "thinking": "the walrus", "signature": "x"}]},
        {"content": [{"type": "reasoning", "reasoning": "the walrus"}]},
        {"content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"q": "the walrus"}}]},
        {"content": [{"type": "custom", "encrypted_content": "the walrus", "id": "the walrus"}]},
        {"content": [{"type": "custom", "result": "A" * 2_000 + "the walrus"}]},
        {"content": [{"type": "image", "base64": "A" * 90}]},
        {"additional_kwargs": {"reasoning_content": "the walrus"}},
        {"invalid_tool_calls": [{"name": "recall_memory", "args": '{"query": "the walrus', "id": "x"}]},
        {"content": None, "invalid_tool_calls": 7, "additional_kwargs": []},
    ],
)
def test_what_is_its_text_its_thinking_or_for_machines_is_not_said_beside_it(fields: dict[str, Any]) -> None:
    assert beside(**fields) == ""


def test_calls_that_could_not_be_read_and_items_of_a_providers_tools() -> None:
    call = {
        "name": "write_file",
        "args": '{"path": "/srv/walrus',
        "id": "x",
        "error": None,
        "type": "invalid_tool_call",
    }
    assert beside(content=[call], invalid_tool_calls=[call]) == 'write_file\n{"path": "/srv/walrus'
    items = [{"type": "web_search_call", "id": "ws", "action": {"type": "search", "query": "walrus"}}]
    assert beside(additional_kwargs={"tool_outputs": items}) == "walrus"


def test_whole_messages_as_json_say_it_too_and_other_bytes_nothing() -> None:
    fields = json.dumps({"content": [{"type": "text-plain", "text": "the walrus"}]}).encode()
    assert extra_text(b"\x00json:HumanMessage\x00" + fields) == "the walrus"
    for other in (None, b"", b"\x00msgpack\x00" + fields, b"[" + fields + b"]", fields[:-1], b'\xff"content"'):
        assert extra_text(other) == ""


def test_what_is_nested_without_end_says_nothing() -> None:
    for depth in (900, 100_000):
        said = b'{"content":[{"type":"custom","value":' + b"[" * depth + b'"x"' + b"]" * depth + b"}]}"
        assert extra_text(said) == ""


def test_what_no_database_holds_is_replaced() -> None:
    said = json.dumps({"content": [{"type": "text-plain", "text": "wal\x00rus \ud83d"}]}, ensure_ascii=False)
    assert extra_text(said.encode("utf-8", "surrogatepass")) == "wal\ufffdrus \ufffd"
