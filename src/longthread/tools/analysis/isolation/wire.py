"""What crosses between this process and a worker: frames of JSON, so that nothing a worker sends is ever executed."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from longthread import errors
from longthread.errors import LongthreadError, SourceError
from longthread.tools.analysis.watch import Interrupted

_LENGTH = struct.Struct("!I")
LARGEST = 256_000_000
"""Bytes of the largest frame: one that says it is larger is not read."""

CONTROL = struct.Struct("!cII")
"""What is told to a worker: a letter and two numbers."""
CONNECT, INTERRUPT = b"C", b"I"

NEST = struct.Struct("!cI")
"""What is told to a nest: a letter and a process."""
FORK, KILL = b"F", b"K"
BORN = struct.Struct("!I")

WireMessage = dict[str, Any]

_DECIMAL, _OBJECT = "d", "o"


class TooLarge(Exception):
    """A frame is larger than any may be."""


def send(to: socket.socket, message: WireMessage) -> None:
    """Sends one frame. Raises OSError when the other side is gone, TooLarge before anything is sent."""
    data = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if len(data) > LARGEST:
        raise TooLarge
    to.sendall(_LENGTH.pack(len(data)) + data)


def receive(of: socket.socket, most: int = LARGEST) -> WireMessage | None:
    """One frame, or None when the other side is gone. Raises TooLarge: it has more than `most` bytes."""
    head = exactly(of, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > most:
        raise TooLarge
    data = exactly(of, length)
    return None if data is None else json.loads(data.decode("utf-8", "surrogatepass"))


def exactly(of: socket.socket, count: int) -> bytes | None:
    """So many bytes, or None when the other side is gone before."""
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


def packed(row: Sequence[Any]) -> list[Any]:
    """A row of plain values as a frame can hold it: decimals and objects are marked as what they are."""
    return [_packed(value) for value in row]


def unpacked(row: Sequence[Any]) -> tuple[Any, ...]:
    """The row that `packed` was called on."""
    return tuple(_unpacked(value) for value in row)


def _packed(value: Any) -> Any:
    if isinstance(value, Decimal):
        return {_DECIMAL: str(value)}
    return {_OBJECT: value} if isinstance(value, dict) else value


def _unpacked(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return Decimal(value[_DECIMAL]) if _DECIMAL in value else value[_OBJECT]


def told(error: Exception) -> WireMessage:
    """An error as a frame can hold it."""
    if isinstance(error, Interrupted):
        return {"interrupted": True}
    if isinstance(error, LongthreadError):
        plain = {key: value if isinstance(value, (str, int)) else str(value) for key, value in error.details.items()}
        return {"error": type(error).__name__, "details": plain}
    return {"error": SourceError.__name__, "details": {"reason": f"{type(error).__name__}: {error}"[:500]}}


def raised(answer: WireMessage) -> Exception | None:
    """The error that a frame holds, if it does."""
    if answer.get("interrupted"):
        return Interrupted()
    if "error" not in answer:
        return None
    kind = getattr(errors, str(answer["error"]), None)
    known = isinstance(kind, type) and issubclass(kind, LongthreadError)
    return (kind if known else SourceError)(**answer.get("details", {}))  # type: ignore[misc] # it is a class, if known
