"""Recent requests in memory. Clients send the whole conversation each time; of what they repeat byte for byte nothing
is parsed, hashed or restored anew. Nothing depends on it but time."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Generic, TypeVar

from longthread.gateway.body import Cut
from longthread.gateway.frame import Frame
from longthread.gateway.indexed import IndexedParts
from longthread.gateway.parts import Anchored
from longthread.store.gateway import GatewayCall, HiddenPart

_Key = TypeVar("_Key", bound=Hashable)
_Kept = TypeVar("_Kept")

BYTES = 4_000_000
"""How much of requests is kept. With what was read of it, it takes several times as many bytes."""
_LEAST = 40_000
"""Bytes that a request counts at least. Each one that is kept is compared with each new one."""
_LEAST_HIDDEN = 512
"""Bytes that the hidden parts of a call count at least."""


@dataclass(slots=True)
class ReadItems:
    """The messages or items of a request.

    Attributes:
        owner: whose they are: a user's, in a dialect.
        frame_count: how many items at the beginning are instructions, and no parts.
        restored: what was put into the first ones.
    """

    owner: bytes
    cut: Cut
    frame_count: int
    parts: IndexedParts
    restored: Restored | None = None

    @property
    def size(self) -> int:
        return self.size_with(self.restored)

    def size_with(self, restored: Restored | None) -> int:
        own = len(self.cut.items) + (len(restored.items.cut.items) if restored else 0)
        return max(own, _LEAST)

    def first(self, count: int) -> ReadItems:
        """Return the first items."""
        if count == len(self.cut.spans):
            return self
        parts = self.parts.first(bisect_left(self.parts.parts, count - self.frame_count, key=attrgetter("item")))
        restored = self.restored if self.restored and self.restored.count <= count else None
        return ReadItems(self.owner, self.cut.first(count), self.frame_count, parts, restored)


@dataclass(frozen=True, slots=True)
class Restored:
    """The first items of a request with other hidden parts.

    Attributes:
        count: how many items.
        ours, theirs: the hidden parts that were put in, and those that stood there before.
        items: the whole request's after that.
        end: where the first items end in its list.
    """

    count: int
    ours: Sequence[HiddenPart]
    theirs: Sequence[Anchored]
    items: ReadItems
    end: int


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
        frames: what requests said beside their conversation, by dialect, head, tail and instructions.
    """

    def __init__(self, size: int = BYTES) -> None:
        self._limit = size
        self._reads: list[ReadItems] = []
        self._hidden: Latest[tuple[str, int, bytes | None], Sequence[HiddenPart]] = Latest(size)
        # What a frame's JSON becomes takes many times its bytes.
        self.frames: Latest[tuple[str, bytes, bytes, bytes], Frame] = Latest(size // 4)

    def like(self, owner: bytes, body: bytes) -> Cut | None:
        """Return a request that begins as a body does, up to the list."""
        own = (each.cut for each in reversed(self._reads) if each.owner == owner)
        return next(
            (each for each in own if body.startswith(each.head) and body.startswith(b"[", len(each.head))), None
        )

    def find(self, owner: bytes, body: bytes, start: int) -> ReadItems | None:
        """Return the first items of the list at `start` of a body, as many as are known."""
        own = [read for read in self._reads if read.owner == owner]
        whole = [read for read in own if body.startswith(read.cut.items, start)]
        if whole:
            return max(whole, key=lambda read: len(read.cut.items))
        counts = [(read.cut.common(body, start), number) for number, read in enumerate(own)]
        count, number = max(counts, default=(0, 0))
        return own[number].first(count) if count and own[number].frame_count < count else None

    def hidden_until(self, call: GatewayCall) -> Sequence[HiddenPart] | None:
        """Return the hidden parts that a call carried, and those of its reply."""
        return self._hidden.get(_key(call))

    def put_hidden(self, call: GatewayCall, found: Sequence[HiddenPart], base: GatewayCall | None) -> None:
        """Keep the hidden parts of a call, in the place of those that its `base` carried."""
        if base is not None:
            self._hidden.pop(_key(base))
        self._hidden.put(_key(call), found, _LEAST_HIDDEN + sum(len(each[-1]) for each in found))

    def forget_hidden(self) -> None:
        self._hidden.clear()

    def put(self, read: ReadItems) -> None:
        """Keep what was read, in the place of what it goes on from."""
        items = read.cut.items
        if not read.cut.head or not items.endswith(b"}") or read.frame_count == len(read.cut.spans):
            return  # there is no list, or its last item is a number, of which one could not tell where it ends
        if not self._has_room(read.size):
            return
        kept = [each for each in self._reads if not (each.owner == read.owner and items.startswith(each.cut.items))]
        kept.append(read)
        self._reads = kept
        self._shrink()

    def note(self, read: ReadItems, restored: Restored) -> None:
        """Keep with what was read what was put into it."""
        if self._has_room(read.size_with(restored)):
            read.restored = restored
            self._shrink()

    def _has_room(self, size: int) -> bool:
        """Whether a request may be kept: a large one would take the place of all others."""
        return size <= self._limit // 2

    def _shrink(self) -> None:
        size = sum(each.size for each in self._reads)
        while size > self._limit:
            size -= self._reads.pop(0).size


def _key(call: GatewayCall) -> tuple[str, int, bytes | None]:
    """Return what a call is known by: another thread of the same name has others."""
    return call.thread_id, call.n, call.hidden_hash
