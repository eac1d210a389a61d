"""What a message says beside its text, by the payload of its entry."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from longthread.model.content import extra_text, pack


def beside(**fields: Any) -> str:
    return extra_text(json.dumps(fields).encode(), "")


def on_the_wire(*blocks: Any, text: str = "") -> str:
    return extra_text(pack("anthropic", [json.dumps(block) for block in blocks], text), text)


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
    assert "the walrus" in on_the_wire("It is so.", block, text="It is so.")
    assert "abc" not in on_the_wire(block)
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
    assert extra_text(b"\x00json:HumanMessage\x00" + fields, "") == "the walrus"
    for other in (None, b"", b"\x00msgpack\x00" + fields, b"[" + fields + b"]", fields[:-1], b'\xff"content"'):
        assert extra_text(other, "") == ""


def test_what_is_nested_without_end_says_nothing() -> None:
    for depth in (900, 100_000):
        said = b'{"content":[{"type":"custom","value":' + b"[" * depth + b'"x"' + b"]" * depth + b"}]}"
        assert extra_text(said, "") == ""


def test_what_no_database_holds_is_replaced() -> None:
    said = json.dumps({"content": [{"type": "text-plain", "text": "wal\x00rus \ud83d"}]}, ensure_ascii=False)
    assert extra_text(said.encode("utf-8", "surrogatepass"), "") == "wal\ufffdrus \ufffd"


@pytest.mark.parametrize(
    "block",
    [
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "海象 walrus"}},
        {"type": "input_file", "filename": "海象 walrus.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
        {"type": "search_result", "source": "https://x", "title": "海象 walrus", "content": []},
        {"type": "tool_result", "tool_use_id": "c", "content": [
            {"type": "text", "text": "See:"}, {"type": "document", "title": "海象 walrus", "source": {"type": "url"}}]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "file", "file": {"filename": "海象 walrus"}}]},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_file", "filename": "海象 walrus"}]},
        {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "海象 walrus", "stderr": ""}]},
        {"type": "computer_call_output", "call_id": "c", "output": {"type": "x", "said": "海象 walrus"}},
        {"type": "mcp_call", "id": "m", "name": "f", "arguments": "{}", "output": "海象 walrus"},
        {"type": "code_execution_tool_result", "tool_use_id": "c", "content": {"type": "x", "stdout": "海象 walrus"}},
        {"type": "compaction", "content": "海象 walrus", "encrypted_content": "secret"},
        {"field": "refusal", "value": "海象 walrus"},
        {"field": "tool_calls", "value": {"id": "c", "custom": {"name": "f", "input": "海象 walrus"}}},
        {"field": "tool_calls", "value": {"id": "c", "function": {"name": "f", "arguments": "{\"海象 walrus"}}},
        {"field": "function_call", "value": {"name": "f", "arguments": "海象 walrus"}},
        {"type": "tool_use", "id": "c", "name": "f", "input": "海象 walrus"},
    ],
)  # fmt: skip
def test_of_the_wire_all_is_said_that_no_column_has(block: dict[str, Any]) -> None:
    said = on_the_wire({"type": "text", "text": "So"}, block, text="So")
    assert "海象 walrus" in said
    assert "secret" not in said


@pytest.mark.parametrize(
    "block",
    [
        "the walrus",
        {"type": "input_text", "text": "the walrus"},
        {"type": "output_text", "text": "the walrus", "annotations": []},
        {"type": "thinking", "thinking": "the walrus", "signature": "the walrus"},
        {"type": "redacted_thinking", "data": "the walrus"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "the walrus"}], "encrypted_content": "x"},
        {"field": "reasoning_content", "value": "the walrus"},
        {"field": "reasoning_details", "value": [{"type": "reasoning.text", "text": "the walrus"}]},
        {"field": "extra_content", "value": {"google": {"thought_signature": "the walrus"}}},
        {"field": "phase", "value": "the walrus"},
        {"field": "tool_calls.extra_content", "value": {"google": {"thought_signature": "the walrus"}}},
        {"field": "tool_calls", "value": {"function": {"name": "f", "arguments": '{"q": "the walrus"}'}}},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "the walrus"},
        {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "the walrus"},
        {"type": "local_shell_call", "call_id": "c", "action": {"command": ["the walrus"]}},
        {"type": "tool_result", "tool_use_id": "c", "content": "the walrus"},
        {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "the walrus"}]},
        {"type": "function_call_output", "call_id": "c", "output": "the walrus"},
        {"role": "tool", "tool_call_id": "c", "content": "the walrus"},
        {"type": "compaction", "encrypted_content": "the walrus"},
    ],
)
def test_of_the_wire_nothing_hidden_is_said_and_nothing_twice(block: Any) -> None:
    assert on_the_wire(block, text="the walrus") == ""
    assert extra_text(pack("anthropic", ["{"], ""), "") == ""
