"""Rows read as what they stand for."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from longthread.errors import StoreDamaged
from longthread.store.driver import Row

T = TypeVar("T")


def decoder(make: Callable[[Row], T]) -> Callable[[Row], T]:
    """`make`, for rows of which something may have been damaged: what nobody could have written is told as that.

    Raises:
        StoreDamaged: nothing can be made of the row.
    """

    @wraps(make)
    def decoded(row: Row) -> T:
        try:
            return make(row)
        except (ValueError, TypeError, KeyError) as error:
            place = ", ".join(f"{name} {row[name]}" for name in ("thread_id", "id", "seq", "idx") if name in row)
            raise StoreDamaged(reason=f"a row cannot be read ({place}): {error}.") from error

    return decoded
