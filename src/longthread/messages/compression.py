"""JSON and pieces of bytes as one compressed body."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

import orjson

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


def dumped(value: Any) -> bytes:
    """Return compact JSON with lone surrogates. Raises TypeError, ValueError or RecursionError: it is no JSON."""
    try:
        return orjson.dumps(value, option=_OPTIONS)
    except TypeError:  # a whole number above 64 bits, half of a surrogate pair, a key that is a number
        return _ENCODER.encode(value).encode("utf-8", "surrogatepass")


def loaded(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # half of a surrogate pair
        return json.loads(text.decode("utf-8", "surrogatepass"))


def pack_body(head: Any, parts: Sequence[bytes] = (), *, passing: bool = False) -> bytes:
    """Pack a JSON value, which tells the lengths of the parts, and the parts into one body. `passing`: it is mostly
    soon replaced, so a small one is not compressed."""
    text = dumped(head)
    raw = b"".join((len(text).to_bytes(4), text, *parts))
    return _RAW + raw if passing and len(raw) <= _PASSING_BYTES else _compressed(raw)


def unpack_body(body: bytes) -> tuple[Any, memoryview]:
    """Return the JSON value of a body, and its joined parts. A damaged body raises any of `UNREADABLE`."""
    raw = _expanded(body)
    stop = 4 + int.from_bytes(raw[:4])
    return json.loads(raw[4:stop].decode("utf-8", "surrogatepass")), memoryview(raw)[stop:]


def _compressed(raw: bytes) -> bytes:
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


def _expanded(body: bytes) -> bytes:
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
