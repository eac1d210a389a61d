"""Which entries of a thread stand before and behind one another: it is a tree, and they are numbered as they came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from longthread.store.index import recall


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches of a thread that is at `tip`, and whose last entry is `last`: `apart` has the entries that do not
    stand behind the one with the number before theirs, each with the one that they stand behind."""

    tip: int
    last: int
    apart: Mapping[int, int]
    _active: list[tuple[int, int]] = field(init=False)
    _behind: dict[int, list[int]] = field(init=False)

    def __post_init__(self) -> None:
        behind: dict[int, list[int]] = {}
        for seq, parent in self.apart.items():
            behind.setdefault(parent, []).append(seq)
        object.__setattr__(self, "_active", recall.active_ranges(self.tip, self.apart))
        object.__setattr__(self, "_behind", behind)

    def is_active(self, seq: int) -> bool:
        """Whether an entry stands on the active branch."""
        return recall.is_active(seq, self._active)

    def around(self, seq: int, count: int) -> list[int]:
        """The `count` entries before an entry and behind it, in their order. Where several branches go on from one, the
        active one does, else the oldest. Entries that retention has deleted are among them."""
        before, behind, at = list[int](), list[int](), seq
        while len(before) < count and (at := self.apart.get(at, at - 1)) > 0:
            before.append(at)
        at = seq
        while len(behind) < count and (following := self._following(at)) is not None:
            behind.append(following)
            at = following
        return [*reversed(before), *behind]

    def _following(self, seq: int) -> int | None:
        next_one = [seq + 1] if seq < self.last and seq + 1 not in self.apart else []
        found = [*next_one, *sorted(self._behind.get(seq, ()))]
        return next((each for each in found if self.is_active(each)), found[0] if found else None)
