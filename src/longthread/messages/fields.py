"""A message's fields in an entry: the columns hold most, and the payload the rest, as JSON.

The layout is LangChain's, of version 1: the same names in the same order, so that both read every thread. Tool calls
are JSON whatever their arguments are. Text is made such that every database can store it, and large JSON is
compressed.
"""

from __future__ import annotations

import json
import marshal
import re
import zlib
from collections.abc import Collection, Mapping, Sequence, Set
from enum import Enum
from math import isfinite
from typing import Any, NamedTuple

import orjson

from longthread.errors import MessageNotStorable
from longthread.model.entry import SHORT_PAYLOAD, Role, ToolCall, shorten_fields, whole

_RAW, _SMALL, _LARGE = b"\x00", b"\x01", b"\x02"
"""The first byte of a body: how the rest is compressed."""
_LARGE_BYTES = 16_384
_LARGEST_BYTES = 64 * 1024 * 1024
_SAMPLE_BYTES = 4096
_PASSING_BYTES = 1792
"""A row with a larger one would not fit where rows are: SQLite would write three pages of 8 kB more, and as many again
when it is replaced; PostgreSQL would compress it by itself, or put it apart."""
# Frequent content of small bodies, the most frequent last. It must never change: stored bodies need it.
_DICTIONARY = (
    b'"__interrupt__","__resume__","__error__","__pregel_tasks","__previous__","__return__","__no_writes__",'
    b'"context","structured_response","jump_to","remaining_steps","branch:to:agent","branch:to:tools","branch:to:model"'
    b'"~__pregel_push, ""~__pregel_pull, tools""~__pregel_pull, model""~__pregel_pull, __start__"'
    b'"additional_kwargs":{},"response_metadata":{},"type":"ai","name":null,"tool_calls":[],"invalid_tool_calls":[],'
    b'"usage_metadata":{"input_tokens":0,"output_tokens":0,"total_tokens":0}},"type":"tool_call"'
    b'"messages":["msgpack",2,["i",json:HumanMessage,["l",[[0,1,2]],["d",[["messages",'
    b'],"pending_sends":[],"updated_channels":["branch:to:model","branch:to:tools","messages"]},"cells":{"messages":'
    b'{"slim":{"v":4,"ts":"2026-01-01T00:00:00.000000+00:00","channel_versions":{"__start__":2,"messages":3,'
    b'"branch:to:model":3},"versions_seen":{"__input__":{},"__start__":{"__start__":1},"model":{"branch:to:model":2}'
)

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
# Like the other encoder, refuse what is no plain value.
_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS


def dump_json(value: Any) -> bytes:
    """Return compact JSON with lone surrogates. Raises TypeError, ValueError or RecursionError: it is no JSON."""
    try:
        return orjson.dumps(value, option=_OPTIONS)
    except TypeError:  # a whole number above 64 bits, half of a surrogate pair, a key that is a number
        return _ENCODER.encode(value).encode("utf-8", "surrogatepass")


def load_json(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # half of a surrogate pair
        return json.loads(text.decode("utf-8", "surrogatepass"))


def pack_body(head: Any, parts: Sequence[bytes] = (), *, passing: bool = False) -> bytes:
    """Pack a JSON value, which tells the lengths of the parts, and the parts into one body. `passing`: it is mostly
    soon replaced, so a small one is not compressed."""
    text = dump_json(head)
    raw = b"".join((len(text).to_bytes(4), text, *parts))
    return _RAW + raw if passing and len(raw) <= _PASSING_BYTES else _compress(raw)


def unpack_body(body: bytes) -> tuple[Any, memoryview]:
    """Return the JSON value of a body, and its joined parts. A damaged body raises any of `UNREADABLE`."""
    raw = _expand(body)
    stop = 4 + int.from_bytes(raw[:4])
    return json.loads(raw[4:stop].decode("utf-8", "surrogatepass")), memoryview(raw)[stop:]


def _compress(raw: bytes) -> bytes:
    if len(raw) <= _LARGE_BYTES:
        # A small window compresses as well here, and is much faster to set up.
        squeezer = zlib.compressobj(6, zlib.DEFLATED, -12, 5, zdict=_DICTIONARY)
        mark = _SMALL
    elif len(raw) <= _LARGEST_BYTES and _is_worth_it(raw):
        squeezer = zlib.compressobj(1, zlib.DEFLATED, -15, 8)
        mark = _LARGE
    else:
        return _RAW + raw
    squeezed = squeezer.compress(raw) + squeezer.flush()
    return mark + squeezed if len(squeezed) < len(raw) else _RAW + raw


def _is_worth_it(raw: bytes) -> bool:
    """Return whether it gets smaller at all: pictures do not, and trying takes long."""
    middle = len(raw) // 2
    sample = raw[middle : middle + _SAMPLE_BYTES]
    return len(zlib.compress(sample, 1)) < 0.9 * len(sample)


def _expand(body: bytes) -> bytes:
    mark, rest = body[:1], memoryview(body)[1:]
    if mark == _RAW:
        return bytes(rest)
    if mark == _SMALL:
        expander = zlib.decompressobj(-12, zdict=_DICTIONARY)
        raw = expander.decompress(rest) + expander.flush()
        if not expander.eof:
            raise ValueError("it ends early")
        return raw
    return zlib.decompress(rest, -15)


_UNSTORABLE = re.compile(r"[\ud800-\udfff\x00]")


def storable(value: Any) -> Any:
    """Replace lone surrogates and NULs in a text, list or object: no database stores them as text."""
    if isinstance(value, str):
        plain = value.isascii() and "\x00" not in value
        return value if plain else _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


_SCALARS = frozenset((str, int, float, bool, type(None)))
_TEXT = frozenset((str,))
_DIGITS = 4000
"""Python refuses to convert whole numbers with many more."""
_HUGE = 10**_DIGITS


class Calls(NamedTuple):
    """A message's calls. Arguments that are no JSON are converted by `as_json`."""

    told: tuple[ToolCall, ...] = ()
    are_exact: bool = True
    """Whether JSON gives all arguments back, except for characters that no database holds."""


def calls_of(calls: Sequence[Mapping[str, Any]], message_id: str | None) -> Calls:
    """Return the calls of a message. Raises MessageNotStorable: they are nested too deeply, or contain themselves."""
    told, are_exact = [], True
    try:
        for call in calls:
            args, is_exact = _args(call["args"])
            told.append(ToolCall(storable(call["id"] or ""), storable(call["name"]), args))
            are_exact = are_exact and is_exact
    except RecursionError as error:
        raise MessageNotStorable(message_id=message_id, reason=str(error)) from error
    return Calls(tuple(told), are_exact)


def _args(args: Any) -> tuple[dict[str, Any], bool]:
    if type(args) is dict and (_is_flat(args) or _is_json(args)):
        return storable(args), True
    told = as_json(args)
    return (told if type(told) is dict else {}), False


def _is_flat(args: dict[Any, Any]) -> bool:
    """Return whether all values are texts, booleans, None or small whole numbers: nearly all arguments are."""
    for key, value in args.items():
        kind = type(value)
        is_plain = kind is str or kind is bool or value is None or (kind is int and -_HUGE < value < _HUGE)
        if type(key) is not str or not is_plain:
            return False
    return True


def _is_json(args: dict[Any, Any]) -> bool:
    try:
        marshal.dumps(args)  # refuses subclasses, which may equal their JSON
        return bool(load_json(dump_json(args)) == args)
    except (TypeError, ValueError, RecursionError):
        return False


def as_json(value: Any) -> Any:
    """Convert a value to what JSON and every database can hold; such a value is returned itself.

    A set becomes a sorted list, a member of an enumeration its value, and anything else, keys too, its text.
    """
    kind = type(value)
    if kind is str:
        return storable(value)
    if kind is dict:
        return _object(value)
    if kind is list:
        return [as_json(item) for item in value]
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if -_HUGE < value < _HUGE else hex(value)
    if kind is float:
        return value if isfinite(value) else str(value)
    return _odd_as_json(value)


def _odd_as_json(value: Any) -> Any:
    if isinstance(value, Enum):
        return as_json(value.value)
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, Set):
        return sorted(map(as_json, value), key=json.dumps)
    if isinstance(value, str):
        return storable(str.__str__(value))
    for kind in (int, float):
        if isinstance(value, kind):
            return as_json(kind(value))
    return storable(str(value))


def _object(value: Mapping[Any, Any]) -> dict[str, Any]:
    if _TEXT.issuperset(map(type, value)):
        return {storable(key): as_json(item) for key, item in value.items()}
    taken = {storable(key) for key in value if type(key) is str}
    made: dict[str, Any] = {}
    for key, item in value.items():
        name = key if type(key) is str else _name(key, taken)
        taken.add(name)
        made[storable(name)] = as_json(item)
    return made


def _name(key: Any, taken: Set[str]) -> str:
    """Return the text of a key that is no text, distinct from the other keys."""
    name = told = key if isinstance(key := as_json(key), str) else json.dumps(key, ensure_ascii=False)
    number = 2
    while name in taken:
        name, number = f"{told} ({number})", number + 1
    return name


def holds_enum(value: Any) -> bool:
    """Return whether it contains a member of an enumeration: some equal their JSON without being it. Raises
    RecursionError: it is nested too deeply, or contains itself."""
    try:
        marshal.dumps(value)  # far faster, and refuses subclasses
    except ValueError:
        return _has_enum(value)
    return False


def _has_enum(value: Any) -> bool:
    kind = type(value)
    if kind is dict or isinstance(value, Mapping):
        return _any_enum(value) or _any_enum(value.values())
    if kind is list or isinstance(value, list | tuple | Set):
        return _any_enum(value)
    return isinstance(value, Enum)


def _any_enum(values: Collection[Any]) -> bool:
    return not _SCALARS.issuperset(map(type, values)) and any(map(_has_enum, values))


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
    short, kept = shorten_fields(rest, text, metadata)
    return (dump_json(short), kept) if SHORT_PAYLOAD in short else (encoded, metadata)


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
        encoded = dump_json(value)
        # orjson would read whole numbers above 64 bits as floats; `rest_of` does not.
        same = alike(load_json(encoded), value) or alike(json.loads(encoded.decode("utf-8", "surrogatepass")), value)
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
