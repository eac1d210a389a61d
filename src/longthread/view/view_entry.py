"""One entry of a view, as people are shown it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from longthread.model.manifest import How, Why


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """One entry of a view, or several: those that a text stood for, or those that the call did not look at, for they
    were no longer in the hot window (`why` is `window`). `tier` is None for what was left out. Of what retention has
    deleted since (`why` is `pruned`) only the place is known, and how it went in.

    `text` is what the model read of it, without thinking blocks. Of several `first` and `seq` are the first and the
    last one, and `count` how many of the branch they are; what was recalled stands for none.
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
