"""The order of a thread's entries, which form a tree and are numbered by arrival."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches of a thread with this `tip` and `last` entry. `apart` maps entries whose parent is not
    the number before theirs to their parent, `versions` later versions of messages to the entries whose places they
    take."""

    tip: int
    last: int
    apart: Mapping[int, int]
    versions: Mapping[int, int] = field(default_factory=dict)
    _active: list[tuple[int, int]] = field(init=False)
    _behind: dict[int, list[int]] = field(init=False)
    _newest: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        behind: dict[int, list[int]] = {}
        for seq, parent in self.apart.items():
            behind.setdefault(parent, []).append(seq)
        object.__setattr__(self, "_active", active_ranges(self.tip, self.apart))
        object.__setattr__(self, "_behind", behind)
        newest = {place: seq for seq, place in sorted(self.versions.items()) if self.is_active(seq)}
        object.__setattr__(self, "_newest", newest)

    def is_active(self, seq: int) -> bool:
        return is_active(seq, self._active)

    def shown_at(self, seq: int) -> int:
        """Return the version that the active branch shows in the place of an entry: mostly itself."""
        return self._newest.get(seq, seq)

    def around(self, seq: int, count: int, shown: Collection[int] = ()) -> list[int]:
        """Return the `count` unshown entries on either side of one, in order; shown ones are skipped.
        At a fork the active branch counts, else the oldest. Entries that retention has deleted are included.
        Later versions have no place of their own: around one is what is around the first."""
        seq = self.versions.get(seq, seq)
        hidden = {self.versions.get(each, each) for each in shown} if self.versions else shown
        before = islice((each for each in self._earlier(seq) if self._is_place(each) and each not in hidden), count)
        behind = islice((each for each in self._later(seq) if self._is_place(each) and each not in hidden), count)
        return [*reversed(list(before)), *behind]

    def _is_place(self, seq: int) -> bool:
        return seq not in self.versions

    def _earlier(self, seq: int) -> Iterator[int]:
        while (seq := self.apart.get(seq, seq - 1)) > 0:
            yield seq

    def _later(self, seq: int) -> Iterator[int]:
        while (following := self._following(seq)) is not None:
            yield (seq := following)

    def _following(self, seq: int) -> int | None:
        next_one = seq + 1 if seq < self.last and seq + 1 not in self.apart else None
        if seq not in self._behind:
            return next_one
        found = sorted(self._behind[seq])
        if next_one is not None:
            found.insert(0, next_one)
        return next((each for each in found if self.is_active(each)), found[0])


def active_ranges(tip: int, apart: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return the branch that ends in `tip` as ranges (first, last), the last range first."""
    starts = sorted(apart)
    ranges: list[tuple[int, int]] = []
    while tip > 0:
        first = max(_at_or_before(starts, tip), 1)
        ranges.append((first, tip))
        tip = apart.get(first, 0)
    return ranges


def _at_or_before(starts: Sequence[int], seq: int) -> int:
    at = bisect_right(starts, seq)
    return starts[at - 1] if at else 1


def is_active(seq: int, ranges: Iterable[tuple[int, int]]) -> bool:
    """Return whether an entry is in these ranges."""
    return any(first <= seq <= last for first, last in ranges)


def leads_to(mark: int, tip: int, apart: Mapping[int, int], first_seq: int = 1) -> bool:
    """Return whether the branch that ends in `tip` contains entry `mark`. `apart` maps entries after the mark that do
    not follow the one written before them to their parents."""
    starts = sorted(apart)
    while tip > mark:
        at = bisect_right(starts, tip)
        if at == 0 or tip < first_seq:
            return True
        tip = apart[starts[at - 1]]
    return tip == mark
