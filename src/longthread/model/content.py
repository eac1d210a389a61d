"""The searchable text in a message's payload, beside the text and the calls of its entry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from longthread.model.attachment import attachment_of
from longthread.model.builtin import RECALL_TOOL
from longthread.model.wire import is_wire, unpack

CALLS = frozenset({"tool_use", "tool_call", "function_call", "custom_tool_call"})
"""Types of blocks that repeat a message's calls."""
THINKING = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
"""Types of thinking blocks, which are not searchable."""
HOSTED = "tool_outputs"
"""The key of `additional_kwargs` for the items of OpenAI's own tools."""

_NAMED = (b'"content"', b'"invalid_tool_calls"', b'"tool_outputs"')
"""A payload without any of these keys holds no further text."""
_PACKED = b"\x00json:"
"""The prefix of a payload that is a whole message as JSON, behind the name of its class and a NUL."""
_SKIPPED = CALLS | THINKING | {"invalid_tool_call"}
_NOTES = ("annotations", "citations")
"""Keys of a text block for its sources."""
_IDS = {"id", "call_id", "tool_use_id", "tool_call_id", "item_id", "file_id", "container_id", "index"}
_SEALED = {"signature", "encrypted_content", "encrypted_index", "base64"}
_OPAQUE = frozenset(_IDS | _SEALED | {"type", "status", "cache_control", "mime_type", "media_type"})
"""Keys of values that are not for people."""
_BYTES = re.compile(r"data:[^,]{0,100};base64,|[\w+/=-]{1000}", re.ASCII)
_DEEPEST = 50
_CALL_FIELDS = ("tool_calls", "function_call")
"""Fields of Chat Completions' messages that are calls."""
_INPUTS = ("arguments", "input")
_WIRE_TEXTS = frozenset({"input_text", "output_text"})
_UNSTORABLE = re.compile("[\ud800-\udfff\x00]")


def extra_text(payload: bytes | None, text: str) -> str:
    """The text and names of attachments, invalid calls and the provider's tool items; empty for a foreign payload.
    `text` is the entry's."""
    if payload is not None and is_wire(payload):
        found = _of_wire(payload, text)
    else:
        found = _texts(_fields(payload) if payload and any(name in payload for name in _NAMED) else {})
    return _UNSTORABLE.sub("\ufffd", "\n".join(each for each in found if each.strip()))


def _fields(payload: bytes) -> Mapping[str, Any]:
    body = payload.partition(b"\x00")[2].partition(b"\x00")[2] if payload.startswith(_PACKED) else payload
    try:
        fields = json.loads(body.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _texts(fields: Mapping[str, Any]) -> Iterator[str]:
    for block in _dicts(fields.get("content")):
        yield from _of_block(block)
    for call in _dicts(fields.get("invalid_tool_calls")):
        if call.get("name") != RECALL_TOOL:
            yield from (each for each in (call.get("name"), call.get("args")) if isinstance(each, str))
    kwargs = fields.get("additional_kwargs")
    for item in _dicts(kwargs.get(HOSTED)) if isinstance(kwargs, dict) else ():
        yield from _of_block(item)


def _of_wire(payload: bytes, text: str) -> Iterator[str]:
    """What a gateway's entry says beside its text and calls. What only providers read stays hidden."""
    try:
        blocks = json.loads(unpack(payload, text)[1], strict=False)
    except (ValueError, RecursionError):
        return
    for block in _dicts(blocks):
        kind, field = block.get("type"), block.get("field")
        if field in _CALL_FIELDS:
            yield from _invalid_call(block.get("value"))
        elif field == "refusal":
            yield from _strings(block.get("value"))
        elif kind == "tool_use":
            yield from _invalid_call(block)
        elif kind in CALLS or ("call_id" in block and str(kind).endswith("_call")):
            continue  # its input is among the entry's calls, whatever it is
        elif kind == "tool_result" or block.get("role") == "tool" or str(kind).endswith("_output"):
            yield from _of_result(block.get("output", block.get("content")))
        elif field is None and kind not in _WIRE_TEXTS:
            yield from _of_block(block)


def _of_result(content: Any) -> Iterator[str]:
    """What a tool's result holds beside its texts, which are the entry's."""
    if isinstance(content, dict):
        yield from _strings(content)
    for block in _dicts(content):
        if not isinstance(block.get("text"), str):
            yield from _of_block(block)


def _invalid_call(call: Any) -> Iterator[str]:
    """A call's input if it is a text: it is no arguments, and not in the entry's calls."""
    if not isinstance(call, dict):
        return
    for inner in (call, call.get("function"), call.get("custom")):
        given = next((inner[key] for key in _INPUTS if key in inner), None) if isinstance(inner, dict) else None
        if isinstance(given, str) and not _is_object(given):
            yield given


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, strict=False), dict) or not text.strip()
    except (ValueError, RecursionError):
        return not text.strip()


def _of_block(block: Mapping[str, Any]) -> Iterator[str]:
    kind = block.get("type")
    if kind in _SKIPPED:
        return
    if kind == "text":
        yield from _strings([block.get(key) for key in _NOTES])
        return
    attached = attachment_of(block)
    if attached is None:
        yield from _strings(block)
    else:
        yield attached.label
        yield attached.text


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    """The texts in a value. Encoded bytes, keys for machines and very deep values are skipped."""
    if isinstance(value, str):
        if not _BYTES.match(value):
            yield value
    elif isinstance(value, dict | list) and depth < _DEEPEST:
        for item in value if isinstance(value, list) else (value[key] for key in value if key not in _OPAQUE):
            yield from _strings(item, depth + 1)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
