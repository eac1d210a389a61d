"""Stored bytes and rows read as what they stand for. What nobody could have written is told as damage."""

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
"""What decoding raises of bytes that were damaged."""
_REASON_CHARS = 200


def damaged(what: str, error: Exception | str, kind: type[RowDamaged] = RowDamaged) -> RowDamaged:
    """The error for stored bytes of which nothing can be made."""
    said = error if isinstance(error, str) else f"{type(error).__name__}: {' '.join(str(error).split())}"
    return kind(reason=f"{what} cannot be read: {said[:_REASON_CHARS]}.")


class Decoding:
    """Decodes something of a thread in its block.

    Args:
        error: `ValueDamaged` where a serializer of the application's makes objects of its classes: those may have
            changed.

    Raises:
        RowDamaged: nothing can be made of it.
    """

    # No generator: a turn enters several, and this costs a third of one.
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
    """`make`, for rows of which something may have been damaged.

    Raises:
        RowDamaged: nothing can be made of the row.
    """

    @wraps(make)
    def decoded(row: Row) -> T:
        try:
            return make(row)
        except UNREADABLE as error:
            place = ", ".join(f"{name} {row[name]}" for name in ("thread_id", "id", "seq", "idx") if name in row)
            raise damaged(f"a row ({place})", error) from error

    return decoded
