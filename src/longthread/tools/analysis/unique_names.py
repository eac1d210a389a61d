"""Unique names: a repeated name gets a number."""

from __future__ import annotations

from collections.abc import Callable


class UniqueNames:
    """Makes names unique: a repeated one gets a number, from `first` on. Names of the same `key` are equal."""

    def __init__(self, *, first: int = 2, key: Callable[[str], str] = str.casefold) -> None:
        self._taken: set[str] = set()
        self._first = first
        self._key = key

    def take(self, wanted: str) -> str:
        """`wanted`, or that with a number where it is taken."""
        name, number = wanted, self._first
        while self._key(name) in self._taken:
            name, number = f"{wanted}_{number}", number + 1
        self._taken.add(self._key(name))
        return name
