"""One entry of a view, for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from longthread.model.manifest import How, Why


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """One entry of a view, or several: those behind a text, or those before the hot window (`why` is `window`). `tier`
    is None for entries that were left out. Of entries that retention has deleted (`why` is `pruned`) only place and
    `how` are known.

    `text` is without thinking. `first`, `seq` and `count` are for several entries; recalled text has none.
    """

    seq: int
    role: str
    how: How
    why: Why | Literal["window", "pruned"] | None
    tier: int | None
    tokens: int
    text: str
    first: int | None = None
    count: int = 1

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}
