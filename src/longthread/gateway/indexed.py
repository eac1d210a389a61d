"""The parts of a conversation with all that is computed of them. Pure.

A longer conversation goes on from what is computed of its beginning: the work is that of its new parts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import attrgetter
from typing import Any

from longthread.gateway.parts import Anchored, Part, anchored, chained, digests, node_of

_at = attrgetter("at")


def _new_hash() -> Any:
    return blake2b(digest_size=16)


@dataclass(frozen=True, slots=True)
class IndexedParts:
    """The parts of a conversation, in order.

    Attributes:
        root: what its digests begin with.
        places: where the visible parts are among all parts.
        digests, nodes: of the visible parts: each stands for its part and all before it.
        hidden: the hidden parts with their anchors.
    """

    root: bytes
    parts: Sequence[Part] = ()
    places: Sequence[int] = ()
    digests: Sequence[bytes] = ()
    nodes: Sequence[int] = ()
    hidden: Sequence[Anchored] = ()
    _hashes: Sequence[bytes] = (_new_hash().digest(),)
    """Of no hidden part, of the first one, of the first two, and so on."""
    _run: int = 0
    """Where the last run of one role begins. Anchors in it change when it goes on."""
    _certain: int = 0
    """How many hidden parts are before that run."""
    _hash: Any = field(default_factory=_new_hash)
    """The state of the hash behind them."""

    @property
    def end(self) -> bytes:
        """The root of what follows."""
        return self.digests[-1] if self.digests else self.root

    def followed_by(self, new: Sequence[Part]) -> IndexedParts:
        """Return these parts and new ones behind them."""
        if not new:
            return self
        start = len(self.parts)
        places = [place for place, part in enumerate(new, start) if part.visible is not None]
        made = digests(self.end, [new[place - start] for place in places])
        return self._with_hidden(
            [*self.parts, *new], [*self.places, *places], [*self.digests, *made], [*self.nodes, *map(node_of, made)]
        )

    def first(self, count: int) -> IndexedParts:
        """Return the first parts."""
        if count == len(self.parts):
            return self
        visible = bisect_left(self.places, count)
        none = IndexedParts(self.root)
        return none._with_hidden(
            self.parts[:count], self.places[:visible], self.digests[:visible], self.nodes[:visible]
        )

    def hidden_before(self, visible: int) -> Sequence[Anchored]:
        """Return the hidden parts at the first visible parts."""
        return self.hidden[: bisect_left(self.hidden, visible, key=_at)]

    def hash_before(self, visible: int) -> bytes:
        """Return the hash of these hidden parts: their `chain`."""
        return self._hashes[bisect_left(self.hidden, visible, key=_at)]

    def hash_with(self, more: Iterable[Anchored]) -> bytes:
        """Return the hash of all hidden parts, and of more behind them."""
        found = self._hash.copy()
        for each in [*self.hidden[self._certain :], *more]:
            found.update(chained(each))
        return bytes(found.digest())

    def behind(self, visible: int) -> int:
        """Return the place among all parts behind the first visible ones and the hidden parts that belong to them."""
        if not visible:
            return 0
        place = self.places[visible - 1] + 1
        own = {id(each.part) for each in self._at(visible - 1) if each.after}
        while place < len(self.parts) and id(self.parts[place]) in own:
            place += 1
        return place

    def _at(self, number: int) -> Sequence[Anchored]:
        begin, end = (bisect_left(self.hidden, at, key=_at) for at in (number, number + 1))
        return self.hidden[begin:end]

    def _with_hidden(
        self, parts: Sequence[Part], places: Sequence[int], made: Sequence[bytes], nodes: Sequence[int]
    ) -> IndexedParts:
        """Return longer parts. Hidden ones are anchored from this one's last run on."""
        new = anchored(parts[self._run :], bisect_left(places, self._run))
        run = _last_run(parts)
        certain = self._certain + len(new) - sum(part.hidden is not None for part in parts[run:])
        hashes, state, found = [*self._hashes[: self._certain + 1]], self._hash, self._hash.copy()
        for number, each in enumerate(new, self._certain + 1):
            found.update(chained(each))
            hashes.append(found.digest())
            if number == certain:
                state = found.copy()
        hidden = [*self.hidden[: self._certain], *new]
        return IndexedParts(self.root, parts, places, made, nodes, hidden, hashes, run, certain, state)


def _last_run(parts: Sequence[Part]) -> int:
    """Return where the last run of one role begins."""
    role = parts[-1].role if parts else None
    others = (number for number in range(len(parts), 0, -1) if parts[number - 1].role != role)
    return next(others, 0)
