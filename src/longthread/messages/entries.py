"""Messages as entries of the log, and back without loss; a gateway's entries as messages too."""

from __future__ import annotations

import json
from typing import Any

from longthread.errors import MessageNotStorable
from longthread.messages.fields import (
    BLANK,
    PACKED,
    PACKED_JSON,
    Fields,
    alike,
    as_json,
    calls_of,
    dump_json,
    exact_json,
    fields_of_row,
    is_packed,
    payload_of,
    rest_of,
    storable,
)
from longthread.messages.message import Content, Message, tool_call
from longthread.model.content import is_wire, unpack
from longthread.model.entry import Draft, Entry, Role, note_in
from longthread.model.ids import new_id
from longthread.store.log import MESSAGE_ID
from longthread.store.rows import UNREADABLE, make_damage_error

_TEXTS = frozenset({"text", "input_text", "output_text"})


def content_of(raw: str) -> Content:
    """Return raw blocks as a message's content: a text, or parts in the form of their provider. Fields of the message
    are no part of it."""
    blocks: list[Any] = [block for block in json.loads(raw) if isinstance(block, str) or "field" not in block]
    if all(isinstance(block, str) or _is_text(block) for block in blocks):
        return "".join(block if isinstance(block, str) else block["text"] for block in blocks)
    return [{**block, "type": "text"} if _is_text(block) else block for block in blocks]


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in _TEXTS and isinstance(block.get("text"), str)


NOT_NOTED = frozenset({"latency_ms", MESSAGE_ID})
"""Keys of a note that are not stored as metadata: one has a column, one is the log's own."""
_COLUMNS = ("id", "role", "text", "tool_call_id", "name", "payload", "metadata")
_CLASSES: dict[Role, str] = {
    "system": "SystemMessage",
    "user": "HumanMessage",
    "assistant": "AIMessage",
    "tool": "ToolMessage",
}
_ROLES: dict[str, Role] = {f"{name}{end}": role for role, name in _CLASSES.items() for end in ("", "Chunk")}
"""The role of a packed message's class."""
_ATTRIBUTES = frozenset(Message.__dataclass_fields__) - {"role", "extra"}


def draft_of(message: Message, *, run_id: str | None = None) -> Draft:
    """Return a message as a draft. `message_of` on the entry gives an equal message.

    Text that no database holds (NUL, lone surrogates) is U+FFFD in the draft, and exact in its payload. Raises
    MessageNotStorable: it holds something that is no JSON.
    """
    calls = calls_of(message.tool_calls, message.id)
    text = storable(message.text)
    note = note_in({"additional_kwargs": message.additional_kwargs})
    metadata = as_json({key: value for key, value in note.items() if key not in NOT_NOTED}) if note else {}
    fields = fields_of(message)
    found = payload_of(fields, message.extra, message.role, text, calls, metadata)
    payload, metadata = found or (_pack(message, fields), metadata)
    usage = message.usage_metadata or {}
    return Draft(
        id=storable(message.id) if message.id else new_id(),
        role=message.role,
        text=text,
        tool_calls=calls.told,
        tool_call_id=storable(message.tool_call_id),
        name=storable(message.name),
        payload=payload,
        tokens=whole_number(usage.get("output_tokens")),
        latency_ms=whole_number(note.get("latency_ms")),
        run_id=run_id,
        metadata=metadata,
    )


def whole_number(value: Any) -> int | None:
    """Return a number that a column can hold. Anything else is in the payload alone."""
    return value if type(value) is int and abs(value) < 2**63 else None


def message_of(entry: Entry | Draft) -> Message:
    """Return the message of an entry, with its original id.

    A message that is no JSON (only applications of LangGraph write those) has what the entry's columns hold. Raises
    RowDamaged: its payload is unreadable.
    """
    try:
        payload = entry.payload
        if payload and is_packed(payload):
            return _unpack_message(entry, payload)
        calls = [call.to_json() for call in entry.tool_calls]
        row = {name: getattr(entry, name) for name in _COLUMNS}
        rest = rest_of([payload])[0] if payload else None
        return message_from(entry.role, fields_of_row(row, calls, rest, entry.metadata.get(MESSAGE_ID)))
    except UNREADABLE as error:
        place = f"entry {entry.seq} of thread {entry.thread_id}" if isinstance(entry, Entry) else f"entry {entry.id}"
        raise make_damage_error(place, error) from error


def fields_of(message: Message) -> Fields:
    """Return a message's fields for its role, in the order of the stored layout."""
    blank = BLANK[message.role]
    return {name: blank["type"] if name == "type" else getattr(message, name) for name in blank}


def message_from(role: Role, fields: Fields) -> Message:
    known = BLANK[role]
    own = {name: value for name, value in fields.items() if name in known and name in _ATTRIBUTES}
    extra = {name: value for name, value in fields.items() if name not in known}
    return Message(role, **own, extra=extra)


def _pack(message: Message, fields: Fields) -> bytes:
    body = _exact_json(fields | message.extra)
    if body is None:
        raise MessageNotStorable(message_id=message.id, reason="it is no JSON")
    return PACKED + f"{PACKED_JSON}{_CLASSES[message.role]}".encode() + PACKED + body


def _exact_json(fields: Fields) -> bytes | None:
    """Return fields as JSON if it is lossless: orjson would make floats of numbers of more than 64 bits."""
    if (body := exact_json(fields)) is not None:
        return body
    try:
        encoded = dump_json(fields)
    except (TypeError, ValueError, RecursionError):
        return None
    return encoded if alike(json.loads(encoded.decode("utf-8", "surrogatepass")), fields) else None


def _of_the_wire(entry: Draft, payload: bytes) -> Message:
    """Return the message of a gateway's entry: its content has the blocks in the form of their provider."""
    dialect, blocks = unpack(payload, entry.text)
    return Message(
        entry.role,
        entry.text if entry.role == "tool" else content_of(blocks),
        response_metadata={"model_provider": dialect} if entry.role == "assistant" else {},
        id=entry.metadata.get(MESSAGE_ID) or entry.id,
        tool_calls=[tool_call(call.name, dict(call.args), call.id) for call in entry.tool_calls],
        tool_call_id=entry.tool_call_id,
    )


def _unpack_message(entry: Draft, payload: bytes) -> Message:
    if is_wire(payload):
        return _of_the_wire(entry, payload)
    kind, body = payload[1:].split(PACKED, 1)
    name = kind.decode()
    id_ = entry.metadata.get(MESSAGE_ID) or entry.id
    if not name.startswith(PACKED_JSON):
        calls = [call.to_json() for call in entry.tool_calls]
        row = {column: getattr(entry, column) for column in _COLUMNS}
        return message_from(entry.role, fields_of_row(row, calls, None, id_))
    fields = json.loads(body.decode("utf-8", "surrogatepass"))
    role = _ROLES.get(name.removeprefix(PACKED_JSON), entry.role)
    return message_from(role, fields | {"id": fields.get("id") or id_})
