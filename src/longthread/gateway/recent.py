"""Recent requests in memory. Clients send the whole conversation each time; of what they repeat byte for byte nothing
is parsed, hashed or restored anew. Nothing depends on it but time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Generic, TypeVar

from longthread.gateway.parts import Part
from longthread.gateway.raw_json import Value
from longthread.store.gateway import HiddenPart

_Key = TypeVar("_Key", bound=Hashable)
_Kept = TypeVar("_Kept")

CHARACTERS = 4_000_000
"""How much text is kept. With what was read of it, it takes about six times as many bytes."""


@dataclass(frozen=True, slots=True)
class ReadItems:
    """The messages or items of a request.

    Attributes:
        owner: whose they are: a user's, in a dialect.
        text: the list's JSON text up to the end of the last item.
        start: where the list began in the request's text, which the places of the items count in.
        frame_count: how many items at the beginning are instructions, and no parts.
        digests, nodes: those of the visible parts.
    """

    owner: bytes
    text: str
    start: int
    items: Sequence[Value]
    frame_count: int
    parts: Sequence[Part]
    digests: Sequence[bytes]
    nodes: Sequence[int]

    def items_at(self, start: int) -> Sequence[Value]:
        """Return the items as they are in a text in which the list begins at `start`."""
        moved = start - self.start
        return [Value(item, begin + moved, end + moved) for item, begin, end in self.items] if moved else self.items

    def first(self, count: int) -> ReadItems:
        """Return the first items."""
        if count == len(self.items):
            return self
        parts = self.parts[: bisect_left(self.parts, count - self.frame_count, key=attrgetter("item"))]
        visible = sum(part.visible is not None for part in parts)
        return replace(
            self,
            text=self.text[: self.items[count - 1].end - self.start],
            items=self.items[:count],
            parts=parts,
            digests=self.digests[:visible],
            nodes=self.nodes[:visible],
        )


class Latest(Generic[_Key, _Kept]):
    """What was used last, up to a size."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._kept: OrderedDict[_Key, tuple[_Kept, int]] = OrderedDict()

    def get(self, key: _Key) -> _Kept | None:
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        return found[0]

    def put(self, key: _Key, value: _Kept, size: int) -> None:
        self.pop(key)
        self._kept[key] = value, size
        self._size += size
        while self._size > self._limit:
            self._size -= self._kept.popitem(last=False)[1][1]

    def pop(self, key: _Key) -> None:
        self._size -= self._kept.pop(key, (None, 0))[1]

    def clear(self) -> None:
        self._kept.clear()
        self._size = 0


class Recent:
    """What is known of recent requests. Of the oldest it knows nothing any more.

    Attributes:
        hidden: the hidden parts up to the end of a reply, by their hash.
        edited: messages with hidden parts put in, by dialect, message and hidden parts.
    """

    def __init__(self, characters: int = CHARACTERS) -> None:
        self._limit = characters
        self._reads: list[ReadItems] = []
        self.hidden: Latest[bytes, Sequence[HiddenPart]] = Latest(characters)
        self.edited: Latest[Hashable, str] = Latest(characters)

    def find(self, owner: bytes, text: str, start: int) -> ReadItems | None:
        """Return the first items of the list at `start` in a text, as many as are known."""
        own = [read for read in self._reads if read.owner == owner]
        whole = [read for read in own if text.startswith(read.text, start)]
        if whole:
            return max(whole, key=lambda read: len(read.text))
        counts = [(_common(read, text, start), number) for number, read in enumerate(own)]
        count, number = max(counts, default=(0, 0))
        return own[number].first(count) if count and own[number].frame_count < count else None

    def put(self, read: ReadItems) -> None:
        """Keep what was read, in the place of what it goes on from."""
        if not read.text.endswith("}"):
            return  # there is none, or it is a number, of which one could not tell where it ends
        kept = [each for each in self._reads if not (each.owner == read.owner and read.text.startswith(each.text))]
        kept.append(read)
        size = sum(len(each.text) for each in kept)
        while size > self._limit:
            size -= len(kept.pop(0).text)
        self._reads = kept


def _common(read: ReadItems, text: str, start: int) -> int:
    """Return how many of the first items a text has."""
    if not text.startswith(read.text[: read.items[0].end - read.start], start):
        return 0

    def differs(number: int) -> bool:
        return not text.startswith(read.text[: read.items[number - 1].end - read.start], start)

    return bisect_right(range(1, len(read.items)), False, key=differs)
