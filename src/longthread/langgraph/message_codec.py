"""Converts LangChain messages to entries of the log, and back without loss."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import langchain_core.messages as lc
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel

from longthread.errors import (
    MessageNotStorable,
    RowDamaged,
    SerializerNeeded,
    SerializerNotUsable,
    ValueDamaged,
)
from longthread.errors.base import convert_errors
from longthread.messages.entries import NOT_NOTED, whole_number
from longthread.messages.fields import (
    BLANK,
    PACKED,
    PACKED_JSON,
    SEALED,
    Calls,
    Fields,
    as_json,
    calls_of,
    exact_json,
    fields_of_row,
    is_packed,
    payload_of,
    rest_of,
    storable,
)
from longthread.model.entry import Draft, Entry, Role, note_in
from longthread.model.ids import new_id
from longthread.store.log import MESSAGE_ID
from longthread.store.rows import UNREADABLE, make_damage_error

ROLES: Mapping[type[BaseMessage], Role] = {
    HumanMessage: "user",
    AIMessage: "assistant",
    ToolMessage: "tool",
    SystemMessage: "system",
}
_CLASSES: dict[str, type[BaseMessage]] = {role: cls for cls, role in ROLES.items()}
_NAMED: dict[str, type[BaseMessage]] = {
    name: cls
    for name in lc.__all__
    if isinstance(cls := getattr(lc, name), type) and issubclass(cls, BaseMessage) and not name.startswith("Base")
}
KNOWN = frozenset((*ROLES, *_NAMED.values()))
"""Classes that every serializer makes messages of. Others are an application's own."""
PLAIN = JsonPlusSerializer()
"""Writes what JSON cannot hold, and reads it for those who have no other."""
_OWN = JsonPlusSerializer(allowed_msgpack_modules=True)
"""Reads what this process has written a moment ago, of whichever class."""
_VEILED = "veiled:"
"""The kind of a packed message whose texts and numbers are veiled, before the serializer's own."""
_ENCRYPTED = "+"
"""What LangGraph's EncryptedSerializer writes between a kind and its cipher's name."""
_NUMBER = "\uffff"
_HALVES = re.compile(r"[\ud800-\udfff]")
_SEQUENCES = frozenset((list, tuple, set, frozenset))
_COLUMNS = ("id", "role", "text", "tool_call_id", "name", "payload", "metadata")
_CONTAINERS = frozenset((dict, list))

_set_dict = BaseModel.__dict__["__dict__"].__set__
_set_fields_set = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_set_extra = BaseModel.__dict__["__pydantic_extra__"].__set__
_set_private = BaseModel.__dict__["__pydantic_private__"].__set__


class SerializerFailed(Exception):
    """A serializer, or a class that it makes, has raised `error`. It does not leave this package."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error) or type(error).__name__)
        self.error = error


def calling_serializer() -> AbstractContextManager[None]:
    """Raise `SerializerFailed` for what an application's code raises in the block; our own errors pass."""
    return convert_errors(SerializerFailed)


def is_own(serde: SerializerProtocol) -> bool:
    """Whether messages are stored as this serializer packs them. LangGraph's own one does nothing to a message that the
    log's form does not; of any other it is not known what for it is there."""
    return type(serde) is not JsonPlusSerializer


def expect_usable(serde: SerializerProtocol) -> None:
    """Raise SerializerNotUsable if an application's serializer does not give messages back."""
    if not is_own(serde):
        return
    probe = HumanMessage("probe", id="probe")
    try:
        with calling_serializer():
            same = serde.loads_typed(serde.dumps_typed(probe)) == probe
    except SerializerFailed as failed:
        reason = f"it cannot store a message ({failed})."
        raise SerializerNotUsable(serde=type(serde).__name__, reason=reason) from failed.error
    if not same:
        raise SerializerNotUsable(serde=type(serde).__name__, reason="what it gives back of a message is another one.")


@dataclass(frozen=True, slots=True)
class MessageForm:
    """How messages are stored: by an application's own serializer, or in the log's form.

    `indexes_text`: the plain text of what an own serializer packs is stored next to it, for recall.
    """

    serde: SerializerProtocol
    indexes_text: bool = False

    @property
    def has_text(self) -> bool:
        return self.indexes_text or not is_own(self.serde)

    def text_of(self, message: BaseMessage) -> str:
        """Return what an entry has as the message's text."""
        return storable(_text(message)) if self.has_text else ""

    def draft_of(self, message: BaseMessage) -> Draft:
        if not is_own(self.serde):
            return draft_of(message, serde=self.serde)
        payload = pack(message, self.serde)
        if self.has_text:
            return replace(draft_of(message, payload=payload), metadata={})
        role = ROLES.get(type(message), "user")
        return Draft(storable(message.id) if message.id else new_id(), role, "", payload=payload)


def draft_of(
    message: BaseMessage, *, run_id: str | None = None, serde: SerializerProtocol = PLAIN, payload: bytes | None = None
) -> Draft:
    """Convert a message to a draft; `message_of` on its entry gives an equal message.

    Text that no database holds (NUL, lone surrogates) is U+FFFD in the draft and exact in its payload. So are call
    arguments that JSON would change: approximate in the draft, exact in the payload.

    Args:
        serde: packs what JSON cannot hold.
        payload: the message as somebody has packed it.
    """
    role = ROLES.get(type(message), "user")
    note = note_in(message.__dict__)
    usage = _field(message, "usage_metadata") or {}
    calls = calls_of(message.tool_calls if isinstance(message, AIMessage) else (), message.id)
    metadata = as_json({key: value for key, value in note.items() if key not in NOT_NOTED}) if note else {}
    text = storable(_text(message))
    if payload is None:
        made = _payload(message, text, calls, metadata)
        payload, metadata = made if made is not None else (pack(message, serde), metadata)
    return Draft(
        id=storable(message.id) if message.id else new_id(),
        role=role,
        text=text,
        tool_calls=calls.told,
        tool_call_id=storable(_field(message, "tool_call_id")),
        name=storable(message.name),
        payload=payload,
        tokens=whole_number(usage.get("output_tokens")),
        latency_ms=whole_number(note.get("latency_ms")),
        run_id=run_id,
        metadata=metadata,
    )


def _field(message: BaseMessage, name: str) -> Any:
    # Looking up an attribute that a message's class lacks is slow.
    return message.__dict__[name] if name in message.__dict__ else (message.__pydantic_extra__ or {}).get(name)


def message_of(entry: Entry | Draft) -> BaseMessage:
    """Restore the message that an entry was made from, with its id.

    Raises:
        RowDamaged: its payload cannot be decoded.
        ValueDamaged: the same, of a class of the application's.
    """
    try:
        calls = [call.to_json() for call in entry.tool_calls]
        row = {name: getattr(entry, name) for name in _COLUMNS}
        rest = rest_of([entry.payload])[0] if entry.payload and not is_packed(entry.payload) else None
        made = read_message(row, calls, rest, entry.metadata.get(MESSAGE_ID), PLAIN)
        return made if isinstance(made, BaseMessage) else build(*made)
    except UNREADABLE as error:
        place = f"entry {entry.seq} of thread {entry.thread_id}" if isinstance(entry, Entry) else f"entry {entry.id}"
        raise make_damage_error(place, error, damage_of(entry.payload)) from error


def damage_of(payload: bytes | None) -> type[RowDamaged]:
    """Return the error class for an undecodable payload: an application's class may have changed."""
    own = payload and is_packed(payload) and not payload.startswith(PACKED + PACKED_JSON.encode())
    return ValueDamaged if own else RowDamaged


def read_message(
    row: Mapping[str, Any],
    calls: Sequence[dict[str, Any]],
    rest: Fields | None,
    sent_id: str | None,
    serde: SerializerProtocol,
) -> BaseMessage | tuple[type[BaseMessage], Fields]:
    """Return an entry's message, or its class and fields where these are all of it.

    Args:
        calls: its tool calls, which become the message's.
        rest: the content of its payload, unless that is packed.
        sent_id: the message's id, where the entry has another.
        serde: see `unpack`.
    """
    if rest is None and row["payload"]:
        message = unpack(row["payload"], serde)
        if message.id is None:
            message.id = sent_id or row["id"]
        return message
    cls = _CLASSES[row["role"]]
    fields = fields_of_row(row, calls, rest, sent_id)
    return (cls, fields) if len(fields) == len(BLANK[row["role"]]) else _with_extra(cls, fields)


def build(cls: type[BaseMessage], fields: Fields) -> BaseMessage:
    """Build a message of these fields without validation. Containers are copied."""
    return showing(cls, copy_containers(fields))


def showing(cls: type[BaseMessage], fields: Fields) -> BaseMessage:
    """Build a message of these fields without validation or copies."""
    message: BaseMessage = object.__new__(cls)
    _set_dict(message, fields)
    _set_fields_set(message, set(fields))
    _set_extra(message, {})
    _set_private(message, None)
    return message


def copy_containers(value: Any) -> Any:
    """Copy lists and objects recursively; share all other values."""
    kind = type(value)
    if kind is dict:
        fields = value.copy()
        for key, item in value.items():
            if type(item) in _CONTAINERS:
                fields[key] = copy_containers(item)
        return fields
    if kind is list:
        return [copy_containers(item) if type(item) in _CONTAINERS else item for item in value]
    return value


def pack(message: BaseMessage, serde: SerializerProtocol = PLAIN) -> bytes:
    """Serialize a whole message for `unpack`; MessageNotStorable if it cannot be serialized."""
    if is_own(serde):
        kind, sealed = _serialize_message(message, serde)
        return PACKED + f"{SEALED}{kind}".encode() + PACKED + sealed
    name = type(message).__name__
    if _NAMED.get(name) is type(message):
        body = exact_json(message.__dict__ | (message.__pydantic_extra__ or {}))
        if body is not None:
            return PACKED + f"{PACKED_JSON}{name}".encode() + PACKED + body
    kind, body = _serialize_message(message, serde)
    return PACKED + kind.encode() + PACKED + body


def unpack(packed: bytes, serde: SerializerProtocol) -> BaseMessage:
    """Restore the message that `pack` was given; ValueError if that fails.

    `serde` restores objects of the classes that it allows. Raises SerializerNeeded for a message that an application's
    own serializer wrote, and this one cannot read.
    """
    kind, body = packed[1:].split(PACKED, 1)
    if kind.startswith(SEALED.encode()):
        return _unseal_message(kind.decode().removeprefix(SEALED), body, serde)
    if kind.startswith(PACKED_JSON.encode()):
        cls = _NAMED[kind.decode().removeprefix(PACKED_JSON)]
        return _with_extra(cls, json.loads(body.decode("utf-8", "surrogatepass")))
    # The base class's method: the message was not written as a subclass might write it.
    message = JsonPlusSerializer.loads_typed(_plain(serde), (kind.decode().removeprefix(_VEILED), body))
    if not isinstance(message, BaseMessage):
        raise ValueError(f"its class is not there or not allowed, the serializer makes {type(message).__name__} of it")
    if not kind.startswith(_VEILED.encode()):
        return message
    return _with_extra(type(message), _unveil(message.__dict__ | (message.__pydantic_extra__ or {})))


def _unseal_message(kind: str, body: bytes, serde: SerializerProtocol) -> BaseMessage:
    own = kind.removeprefix(_VEILED)
    if not is_own(serde):
        raise SerializerNeeded(kind=own, reason="the one at hand is LangGraph's own.")
    message = read_through(serde, own, body, is_sealed=True)
    if not isinstance(message, BaseMessage):
        raise SerializerNeeded(kind=own, reason=f"the one at hand makes {type(message).__name__} of a message.")
    if own == kind:
        return message
    return _with_extra(type(message), _unveil(message.__dict__ | (message.__pydantic_extra__ or {})))


def read_through(serde: SerializerProtocol, kind: str, body: bytes, *, is_sealed: bool = False) -> Any:
    """Return what a serializer makes of stored bytes; SerializerNeeded if it cannot, and they are encrypted, or written
    by an application's own (`is_sealed`)."""
    if not is_sealed and _ENCRYPTED not in kind:
        return serde.loads_typed((kind, body))
    try:
        with calling_serializer():
            return serde.loads_typed((kind, body))
    except SerializerFailed as failed:
        error = failed.error
        said = " ".join(str(error).split()) or "it says no more"
        raise SerializerNeeded(kind=kind, reason=f"the one at hand fails ({type(error).__name__}: {said}).") from error


def copy_of(message: BaseMessage, serde: SerializerProtocol = PLAIN) -> BaseMessage:
    """Deep-copy a message; MessageNotStorable if it can be neither copied nor serialized."""
    with suppress(*UNREADABLE, copy.Error):
        return copy.deepcopy(message)
    try:
        # It holds a lock, say, which is not stored.
        return unpack(pack(message, serde), serde if is_own(serde) else _OWN)
    except ValueError as error:
        raise MessageNotStorable(message_id=message.id, reason=str(error)) from error


def _plain(serde: SerializerProtocol) -> JsonPlusSerializer:
    """Return the part of a saver's serializer that knows the allowed classes."""
    while isinstance(serde, EncryptedSerializer):
        serde = serde.serde
    return serde if isinstance(serde, JsonPlusSerializer) else PLAIN


def _serialize_message(message: BaseMessage, serde: SerializerProtocol) -> tuple[str, bytes]:
    fields = message.__dict__ | (message.__pydantic_extra__ or {})
    kind = ""
    try:
        if _is_odd(fields):
            kind, message = _VEILED, _with_extra(type(message), _veil(fields))
        own, body = serde.dumps_typed(message)
    except (TypeError, ValueError, RecursionError) as error:
        raise MessageNotStorable(message_id=message.id, reason=str(error)) from error
    return kind + own, body


def _is_odd(value: Any) -> bool:
    """Whether it holds lone surrogates, which the serializer replaces, or numbers that it refuses."""
    if isinstance(value, str):
        return not value.isascii() and _HALVES.search(value) is not None
    if isinstance(value, int):
        return not -(2**63) <= value < 2**64
    if isinstance(value, dict):
        return any(map(_is_odd, value)) or any(map(_is_odd, value.values()))
    return type(value) in _SEQUENCES and any(map(_is_odd, value))


def _veil(value: Any) -> Any:
    """Encode every text as its bytes, a letter each, and large numbers as text that no other text equals."""
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").decode("latin-1")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return f"{_NUMBER}{value:x}"
    if isinstance(value, dict):
        return {_veil(key): _veil(item) for key, item in value.items()}
    return type(value)(map(_veil, value)) if type(value) in _SEQUENCES else value


def _unveil(value: Any) -> Any:
    """Invert `_veil`."""
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        if value.startswith(_NUMBER):
            return int(value[1:], 16)
        return value.encode("latin-1").decode("utf-8", "surrogatepass")
    if isinstance(value, dict):
        return {_unveil(key): _unveil(item) for key, item in value.items()}
    return type(value)(map(_unveil, value)) if type(value) in _SEQUENCES else value


def _with_extra(cls: type[BaseMessage], fields: Fields) -> BaseMessage:
    known = cls.model_fields
    message = build(cls, {key: value for key, value in fields.items() if key in known})
    _set_extra(message, {key: value for key, value in fields.items() if key not in known})
    return message


def _text(message: BaseMessage) -> str:
    # `text` copies the string, which is slow for a long one.
    return message.content if type(message.content) is str else str(message.text)


def _payload(message: BaseMessage, text: str, calls: Calls, metadata: Fields) -> tuple[bytes | None, Fields] | None:
    """Build a payload, see `payload_of`; None: the whole message must be packed, as one of another class."""
    role = ROLES.get(type(message))
    if role is None or message.__dict__.keys() != BLANK[role].keys():
        return None
    return payload_of(message.__dict__, message.__pydantic_extra__ or {}, role, text, calls, metadata)
