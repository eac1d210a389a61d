"""A least recently used cache."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class LRU(Generic[_K, _V]):
    """At most `most` values, of `most_size` together by `size`, except that the newest always stays. Not thread-safe,
    but for `peek`."""

    def __init__(
        self, most: int = sys.maxsize, *, most_size: int = sys.maxsize, size: Callable[[_V], int] = lambda value: 0
    ) -> None:
        self._most = most
        self._most_size = most_size
        self._size_of = size
        self._values: OrderedDict[_K, tuple[_V, int]] = OrderedDict()
        self.size = 0

    def get(self, key: _K) -> _V | None:
        """The value; counts as a use."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def peek(self, key: _K) -> _V | None:
        """The value; does not count as a use."""
        found = self._values.get(key)
        return found[0] if found is not None else None

    def items(self) -> list[tuple[_K, _V]]:
        """All keys and values, the least recently used first."""
        return [(key, value) for key, (value, _) in self._values.copy().items()]

    def put(self, key: _K, value: _V) -> None:
        """Adds or replaces a value; counts as a use."""
        _, before = self._values.pop(key, (None, 0))
        size = self._size_of(value)
        self._values[key] = value, size
        self.size += size - before
        while len(self._values) > self._most or (self.size > self._most_size and len(self._values) > 1):
            self.pop(next(iter(self._values)))

    def pop(self, key: _K) -> _V | None:
        """Removes and returns a value, or None."""
        found = self._values.pop(key, None)
        if found is None:
            return None
        self.size -= found[1]
        return found[0]

    def __contains__(self, key: _K) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)
