"""JSON frames between this process and a worker. Nothing that a worker sends is ever executed."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from longthread import errors
from longthread.errors import LongthreadError, SourceError
from longthread.tools.analysis.limits import Interrupted

_LENGTH = struct.Struct("!I")
LARGEST = 256_000_000
"""Bytes of the largest frame. A larger one is not read."""

CONTROL = struct.Struct("!cII")
"""A message to a worker: its kind, a connection and a request."""
CONNECT, INTERRUPT = b"C", b"I"

ORDER = struct.Struct("!cI")
"""A message to the fork server: its kind, and the number of a driver to load, or the id of a process to kill."""
FORK, KILL = b"F", b"K"
ANSWER = struct.Struct("!I")

WireMessage = dict[str, Any]

_DECIMAL, _OBJECT = "d", "o"


class TooLarge(Exception):
    """A frame is larger than the limit."""


def send(to: socket.socket, message: WireMessage) -> None:
    """Sends one frame. Raises OSError: the other side has ended; TooLarge: nothing was sent."""
    data = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if len(data) > LARGEST:
        raise TooLarge
    to.sendall(_LENGTH.pack(len(data)) + data)


def receive(of: socket.socket, most: int = LARGEST) -> WireMessage | None:
    """Reads one frame; None when the other side has ended. Raises TooLarge above `most` bytes."""
    head = exactly(of, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > most:
        raise TooLarge
    data = exactly(of, length)
    return None if data is None else json.loads(data.decode("utf-8", "surrogatepass"))


def exactly(of: socket.socket, count: int) -> bytes | None:
    """Reads `count` bytes; None when the other side ends before."""
    data = bytearray()
    while len(data) < count:
        try:
            part = of.recv(min(count - len(data), 1_048_576))
        except ConnectionError:
            return None
        if not part:
            return None
        data += part
    return bytes(data)


def pack_row(row: Sequence[Any]) -> list[Any]:
    """Encodes a row of plain values as JSON, with tags for decimals and objects."""
    return [_pack_value(value) for value in row]


def unpack_row(row: Sequence[Any]) -> tuple[Any, ...]:
    """Decodes a row that `pack_row` has encoded."""
    return tuple(_unpack_value(value) for value in row)


def _pack_value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return {_DECIMAL: str(value)}
    return {_OBJECT: value} if isinstance(value, dict) else value


def _unpack_value(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return Decimal(value[_DECIMAL]) if _DECIMAL in value else value[_OBJECT]


def error_message(error: Exception) -> WireMessage:
    """Encodes an error."""
    if isinstance(error, Interrupted):
        return {"interrupted": True}
    if isinstance(error, LongthreadError):
        plain = {key: value if isinstance(value, (str, int)) else str(value) for key, value in error.details.items()}
        return {"error": type(error).__name__, "details": plain}
    return {"error": SourceError.__name__, "details": {"reason": f"{type(error).__name__}: {error}"[:500]}}


def error_of(answer: WireMessage) -> Exception | None:
    """The error that a message holds, if any."""
    if answer.get("interrupted"):
        return Interrupted()
    if "error" not in answer:
        return None
    kind = getattr(errors, str(answer["error"]), None)
    known = isinstance(kind, type) and issubclass(kind, LongthreadError)
    return (kind if known else SourceError)(**answer.get("details", {}))  # type: ignore[misc] # it is a class, if known
