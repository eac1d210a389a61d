"""Decoding of stored bytes and rows; what cannot be decoded is reported as damage."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import TypeVar

from longthread.errors import RowDamaged
from longthread.store.driver import Row

T = TypeVar("T")

UNREADABLE = (
    zlib.error,
    ValueError,  # JSON, UTF-8, msgpack and times too
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    NotImplementedError,  # a kind that the serializer does not know
)
"""Errors that damaged bytes cause when decoded."""
_REASON_CHARS = 200


def damaged(what: str, error: Exception | str, kind: type[RowDamaged] = RowDamaged) -> RowDamaged:
    """Return the error for stored bytes that cannot be decoded."""
    said = error if isinstance(error, str) else f"{type(error).__name__}: {' '.join(str(error).split())}"
    return kind(reason=f"{what} cannot be read: {said[:_REASON_CHARS]}.")


class Decoding:
    """Decodes part of a thread in a `with` block, and raises `RowDamaged` if that fails.

    Args:
        error: `ValueDamaged` where a serializer builds the application's objects: its classes may have changed.
    """

    # Not a generator, which costs three times as much: a turn enters several.
    __slots__ = ("_error", "_id", "_kind", "_thread_id")

    def __init__(self, thread_id: str, kind: str, id_: object, error: type[RowDamaged] = RowDamaged) -> None:
        self._thread_id, self._kind, self._id, self._error = thread_id, kind, id_, error

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, UNREADABLE):
            raise damaged(f"{self._kind} {self._id} of thread {self._thread_id}", error, self._error) from error


def decoder(make: Callable[[Row], T]) -> Callable[[Row], T]:
    """Wrap `make` so that a row it cannot decode raises `RowDamaged`."""

    @wraps(make)
    def decoded(row: Row) -> T:
        try:
            return make(row)
        except UNREADABLE as error:
            place = ", ".join(f"{name} {row[name]}" for name in ("thread_id", "id", "seq", "idx") if name in row)
            raise damaged(f"a row ({place})", error) from error

    return decoded
