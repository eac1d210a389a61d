"""A message's fields in an entry: the columns hold most, and the payload the rest, as JSON.

The layout is LangChain's, of version 1: the same names in the same order, so that both read every thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from longthread.messages.compression import dumped, loaded
from longthread.messages.sanitize import storable
from longthread.messages.tool_calls import Calls, holds_enum
from longthread.model.entry import SHORT_PAYLOAD, Role, ToolCall, shortened, whole

Fields = dict[str, Any]
"""Names and values, in the order of a payload."""

PACKED = b"\x00"
"""First byte of a payload that is not JSON but a whole message, with its kind up to the next such byte: a message that
the columns and JSON cannot hold."""
SEALED = "sealed:"
"""The kind of a packed message that an application's own serializer wrote, before that serializer's kind."""
PACKED_JSON = "json:"
"""The kind of a packed message that is JSON, before the name of its class."""


def _blank(kind: str, **own: Any) -> Fields:
    shared: Fields = {"content": "", "additional_kwargs": {}, "response_metadata": {}, "type": kind}
    return shared | {"name": None, "id": None} | own


BLANK: Mapping[Role, Fields] = {
    "system": _blank("system"),
    "user": _blank("human"),
    "assistant": _blank("ai", tool_calls=[], invalid_tool_calls=[], usage_metadata=None),
    "tool": _blank("tool", tool_call_id="", artifact=None, status="success"),
}
"""The fields of an empty message of each role. Never share it: copy it."""


def payload_of(
    fields: Fields, extra: Fields, role: Role, text: str, calls: Calls, metadata: Fields
) -> tuple[bytes | None, Fields] | None:
    """Return the fields that an entry's columns do not hold, and their metadata. None: JSON would lose something, so
    the whole message must be packed."""
    rest = _rest(fields, role, text, calls) | extra
    if not rest:
        return None, metadata
    encoded = exact_json(rest)
    if encoded is None or SHORT_PAYLOAD in rest:
        return None
    short, kept = shortened(rest, text, metadata)
    return (dumped(short), kept) if SHORT_PAYLOAD in short else (encoded, metadata)


def _rest(fields: Fields, role: Role, text: str, calls: Calls) -> Fields:
    held = {"content": text, "name": storable(fields["name"]), "id": storable(fields["id"])}
    if calls.told and calls.are_exact:
        held["tool_calls"] = [_held(call) for call in calls.told]
    if role == "tool":
        held["tool_call_id"] = storable(fields["tool_call_id"])
    blank = BLANK[role]
    return {key: value for key, value in fields.items() if not alike(value, held.get(key, blank[key]))}


def _held(call: ToolCall) -> Fields:
    return {"id": call.id, "name": call.name, "args": call.args, "type": "tool_call"}


def alike(one: Any, other: Any) -> bool:
    """Return whether two values are equal; False for values that cannot be compared, such as arrays."""
    try:
        return bool(one == other)
    except (ValueError, TypeError, RuntimeError):
        return False


def exact_json(value: Fields) -> bytes | None:
    """Return an object as JSON if that is lossless; lone surrogates are preserved."""
    try:
        if holds_enum(value):
            return None
        encoded = dumped(value)
        # orjson would read whole numbers above 64 bits as floats; `rest_of` does not.
        same = alike(loaded(encoded), value) or alike(json.loads(encoded.decode("utf-8", "surrogatepass")), value)
    except (TypeError, ValueError, RecursionError):
        return None
    return encoded if same else None


def is_packed(payload: bytes) -> bool:
    """Return whether a payload is a whole packed message instead of JSON."""
    return payload.startswith(PACKED)


def rest_of(payloads: Sequence[bytes]) -> list[Fields]:
    """Parse unpacked payloads, all at once, for that is faster."""
    objects: list[Fields] = json.loads((b"[%b]" % b",".join(payloads)).decode("utf-8", "surrogatepass"))
    if len(objects) != len(payloads):
        raise ValueError("it is not one object")
    return objects


def fields_of_row(row: Mapping[str, Any], calls: Sequence[Fields], rest: Fields | None, sent_id: str | None) -> Fields:
    """Return all fields of the message of an entry's row with an unpacked payload.

    Args:
        calls: its tool calls, which become the message's.
        rest: what its payload holds.
        sent_id: the message's original id, if the entry has another.
    """
    role: Role = row["role"]
    fields = BLANK[role].copy()
    fields["content"], fields["name"], fields["id"] = row["text"], row["name"], sent_id or row["id"]
    if calls and role == "assistant":
        # The keys in LangChain's order.
        fields["tool_calls"] = [
            {"name": call["name"], "args": call["args"], "id": call["id"], "type": "tool_call"} for call in calls
        ]
    elif role == "tool":
        fields["tool_call_id"] = row["tool_call_id"]
    if rest:
        fields |= whole(rest, row["text"], row["metadata"]) if SHORT_PAYLOAD in rest else rest
    return fields
