"""A cache that lets go of what was used least recently."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class LRU(Generic[_K, _V]):
    """At most `most` values; those that were used least recently go first. Threads that share one need a lock.

    Args:
        most_size: how large the values may be together. The last one that was put stays, however large it is.
        size: how large a value is. It is asked once, when the value is put.
    """

    def __init__(
        self, most: int = sys.maxsize, *, most_size: int = sys.maxsize, size: Callable[[_V], int] = lambda value: 0
    ) -> None:
        self._most = most
        self._most_size = most_size
        self._size_of = size
        self._values: OrderedDict[_K, tuple[_V, int]] = OrderedDict()
        self.size = 0

    def get(self, key: _K) -> _V | None:
        """The value, which counts as used now."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def peek(self, key: _K) -> _V | None:
        """The value, which does not count as used by this. Needs no lock."""
        found = self._values.get(key)
        return found[0] if found is not None else None

    def items(self) -> list[tuple[_K, _V]]:
        """All values with their keys, the one that was used least recently first."""
        return [(key, value) for key, (value, _) in self._values.copy().items()]

    def put(self, key: _K, value: _V) -> None:
        """Add a value, or replace it; it counts as used now."""
        self.pop(key)
        self._values[key] = value, self._size_of(value)
        self.size += self._values[key][1]
        while len(self._values) > self._most or (self.size > self._most_size and len(self._values) > 1):
            self.pop(next(iter(self._values)))

    def pop(self, key: _K) -> _V | None:
        """Remove a value; None where it is not there."""
        found = self._values.pop(key, None)
        if found is None:
            return None
        self.size -= found[1]
        return found[0]

    def __contains__(self, key: _K) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)
