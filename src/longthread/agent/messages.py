"""LangChain messages as entries of the log, and back without loss."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from longthread.model.entry import Draft, Entry, Role, ToolCall
from longthread.model.ids import new_id
from longthread.store.log import MESSAGE_ID, sent_id

NOTE = "longthread"
"""Key of `additional_kwargs` under which we keep what an entry's metadata says."""

_ROLES: dict[type[BaseMessage], Role] = {
    HumanMessage: "user",
    AIMessage: "assistant",
    ToolMessage: "tool",
    SystemMessage: "system",
}
_CLASSES: dict[Role, type[BaseMessage]] = {role: cls for cls, role in _ROLES.items()}
_DEFAULTS: dict[str, Any] = {
    "additional_kwargs": {},
    "response_metadata": {},
    "tool_calls": [],
    "invalid_tool_calls": [],
    "usage_metadata": None,
    "artifact": None,
    "status": "success",
    "name": None,
    "example": False,
}
_NOT_NOTED = {"latency_ms", MESSAGE_ID}
"""What of a note is not kept as metadata: a column of its own, and the log's word."""
_IN_COLUMNS = {"type", "id", "content", "tool_calls", "tool_call_id", "name"}
_SERDE = JsonPlusSerializer()
_PACKED = b"\x00"
"""First byte of a payload that is not JSON but the whole message, packed: a message that JSON cannot hold."""


def draft_of(message: BaseMessage, *, run_id: str | None = None) -> Draft:
    """A message as a draft. `message_of` on the entry gives an equal message."""
    role = _ROLES.get(type(message), "user")
    note = message.additional_kwargs.get(NOTE, {})
    usage = getattr(message, "usage_metadata", None) or {}
    return Draft(
        id=message.id or new_id(),
        role=role,
        text=str(message.text),
        tool_calls=tuple(_calls(message)),
        tool_call_id=getattr(message, "tool_call_id", None),
        name=message.name,
        payload=_payload(message, role),
        tokens=usage.get("output_tokens"),
        latency_ms=note.get("latency_ms"),
        run_id=run_id,
        metadata={key: value for key, value in note.items() if key not in _NOT_NOTED},
    )


def message_of(entry: Entry | Draft) -> BaseMessage:
    """The message that an entry was made from, with the id that it had."""
    if entry.payload is not None and entry.payload.startswith(_PACKED):
        kind, body = entry.payload[1:].split(_PACKED, 1)
        message: BaseMessage = _SERDE.loads_typed((kind.decode(), body))
        return message
    rest: dict[str, Any] = json.loads(entry.payload) if entry.payload else {}
    fields: dict[str, Any] = {"id": sent_id(entry), "content": entry.text, "name": entry.name}
    if entry.role == "assistant":
        fields["tool_calls"] = [{**call.to_json(), "type": "tool_call"} for call in entry.tool_calls]
    if entry.role == "tool":
        fields["tool_call_id"] = entry.tool_call_id
    return _CLASSES[entry.role](**(fields | rest))


def _calls(message: BaseMessage) -> list[ToolCall]:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return [ToolCall(id=call["id"] or "", name=call["name"], args=call["args"]) for call in calls]


def _payload(message: BaseMessage, role: Role) -> bytes | None:
    if type(message) not in _ROLES:
        return _pack(message)
    rest = _rest(message)
    if not rest:
        return None
    try:
        text = json.dumps(rest, ensure_ascii=False, separators=(",", ":"))
        encoded = text.encode("utf-8")
    except (TypeError, ValueError):
        return _pack(message)
    return encoded if json.loads(text) == rest else _pack(message)


def _rest(message: BaseMessage) -> dict[str, Any]:
    """What the columns of an entry do not hold of a message."""
    dump = message.model_dump()
    rest = {
        key: value
        for key, value in dump.items()
        if key not in _IN_COLUMNS and not (key in _DEFAULTS and value == _DEFAULTS[key])
    }
    if message.content != str(message.text):
        rest["content"] = dump["content"]
    calls = dump.get("tool_calls") or []
    if any(not _fits_column(call) for call in calls):
        rest["tool_calls"] = calls
    return rest


def _fits_column(call: Mapping[str, Any]) -> bool:
    return bool(call.get("id")) and set(call) <= {"id", "name", "args", "type"} and call.get("type") == "tool_call"


def _pack(message: BaseMessage) -> bytes:
    kind, body = _SERDE.dumps_typed(message)
    return _PACKED + kind.encode() + _PACKED + body
