"""A request as the gateway reads it: its conversation, the frame around that, and recent requests in memory. Pure.

Clients send the whole conversation each time. Bytes that they repeat are not parsed, hashed or restored again. Only
time depends on what is in memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from operator import attrgetter
from typing import Any, Generic, TypeVar

from longthread.gateway.dialects.dialect import Dialect, RequestFields
from longthread.gateway.parts import Anchored, IndexedParts, Part, root_of
from longthread.gateway.raw_json import Cut, Value, cut, list_in, members, replace_spans, without_credentials
from longthread.store.gateway import GatewayCall, HiddenPart

_WITH_TOOLS = frozenset({"tools", "mcp_servers"})
"""Fields that may hold the credentials of servers."""
_CREDENTIALS = frozenset({"api_key", "apikey", "authorization", "access_token", "headers", "extra_headers"})
"""Fields in which proxies take the client's own."""


@dataclass(frozen=True)
class Frame:
    """The system prompt, tools and parameters of a request.

    Attributes:
        fields: those of the request, a repeated one as its last. Their places are of bytes in the body; after the list
            they count from the body's end, and are negative. The list itself is empty here.
        texts: what the log has of them: their JSON texts without the credentials of servers. Instead of the list there
            are the instructions that it begins with.
        tools: a hash of the names of the tools; 0 without any.
    """

    fields: RequestFields
    texts: Mapping[str, str]
    tools: int

    @classmethod
    def read(cls, dialect: Dialect, head: bytes, rest: bytes) -> Frame:
        """Read the parts of a body before a list and after its last item; or, with an empty `head`, a whole body.

        Raises:
            ValueError: it is no request of this dialect, or has more than one list.
        """
        body = head + b"[" + rest if head else rest
        text = body.decode("utf-8")
        found = dict(members(text))
        fields = {name: _in_bytes(value, text, len(body), len(head)) for name, value in found.items()}
        if head and fields[dialect.items].start != len(head):
            raise ValueError(f"It has more than one list of {dialect.items}.")
        texts = {name: text[value.start : value.end] for name, value in found.items() if name != dialect.items}
        for name in texts:
            if name in _WITH_TOOLS:
                texts[name] = without_credentials(texts[name])
            elif name.lower() in _CREDENTIALS:
                texts[name] = '"***"'
        return cls(fields, texts, _hash_of(dialect.tool_names(fields)))

    def with_instructions(self, dialect: Dialect, texts: list[str]) -> Frame:
        return Frame(self.fields, {**self.texts, dialect.items: f"[{','.join(texts)}]"}, self.tools)

    @cached_property
    def id(self) -> str:
        digest = blake2b(digest_size=8)
        for name, raw in sorted(self.texts.items()):
            digest.update(f"{len(name)} {len(raw)} {name}{raw}".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def _in_bytes(found: Value, text: str, size: int, head: int) -> Value:
    """Return a value with its places in bytes, from the end of `size` bytes if they are after the `head`."""
    start, end = found.start, found.end
    if not text.isascii():
        start, end = len(text[:start].encode()), len(text[:end].encode())
    return Value(found.value, start - size * (start > head > 0), end - size * (end > head > 0))


def _hash_of(names: Iterable[str]) -> int:
    found = sorted(names)
    listed = "\n".join(found).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(listed, digest_size=7).digest(), "big") if found else 0


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
        ours, theirs: the inserted hidden parts, and the ones that stood there before.
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
        frames: the fields of requests other than their conversation, by dialect, head, tail and instructions.
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
        """Keep the hidden parts of a call, in place of the parts that its `base` carried."""
        if base is not None:
            self._hidden.pop(_key(base))
        self._hidden.put(_key(call), found, _LEAST_HIDDEN + sum(len(each[-1]) for each in found))

    def forget_hidden(self) -> None:
        self._hidden.clear()

    def put(self, read: ReadItems) -> None:
        """Keep what was read, in the place of what it goes on from."""
        items = read.cut.items
        if not read.cut.head or not items.endswith(b"}") or read.frame_count == len(read.cut.spans):
            return  # there is no list, or its last item is a number, whose end is not certain
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


@dataclass(frozen=True)
class Asked:
    """A model's request.

    Attributes:
        owner: who asks, by `Owners`.
        says: its fields other than its conversation.
        conversation: its messages or items, as they were read.
    """

    dialect: Dialect
    user: str
    body: bytes = field(repr=False)
    says: Frame = field(repr=False)
    conversation: ReadItems = field(repr=False)
    recent: Recent = field(repr=False)
    owner: str | None = None

    @classmethod
    def read(
        cls, dialect: Dialect, user: str, body: bytes, recent: Recent | None = None, owner: str | None = None
    ) -> Asked:
        """Read a request's body. Raises ValueError: it is no request of this dialect."""
        recent = recent or Recent(0)
        try:
            says, read = _read(dialect, root_of(user, dialect.name, owner), body, recent)
        except (RecursionError, TypeError, AttributeError) as error:
            raise ValueError("It is nested too deeply, or has values of other types.") from error
        recent.put(read)
        return cls(dialect, user, body, says, read, recent, owner)

    def with_body(self, body: bytes) -> Asked:
        """Return another request of the same client's."""
        return Asked.read(self.dialect, self.user, body, self.recent, self.owner)

    def with_field(self, name: str, text: str) -> Asked:
        """Return the request with another value of a field that it has, as a JSON text."""
        place, pieces, new = self.fields[name], self.conversation.cut, text.encode()
        if not pieces.head:
            return self.with_body(replace_spans(self.body, [(place.start, place.end, new)]))
        head, tail = pieces.head, pieces.tail
        if place.start >= 0:
            head = replace_spans(head, [(place.start, place.end, new)])
        else:
            tail = replace_spans(tail, [(len(tail) + place.start, len(tail) + place.end, new)])
        return self._with(replace(self.conversation, cut=replace(pieces, head=head, tail=tail)))

    def with_items(self, items: bytes, known: ReadItems | None = None) -> Asked:
        """Return the request with another list. `known` are its first items, as they were read before."""
        old = self.conversation.cut
        body = b"".join((old.head, items, old.tail))
        pieces, values = cut(body, old.head, known=known.cut if known else None, tail=old.tail)
        read = _parts(self.dialect, self.conversation.owner, pieces, values, known)
        return replace(self, body=body, conversation=read)

    def _with(self, read: ReadItems) -> Asked:
        says = _frame(self.dialect, read.cut, read.frame_count, self.recent)
        return replace(self, body=read.cut.body, says=says, conversation=read)

    @property
    def fields(self) -> RequestFields:
        return self.says.fields

    def value(self, name: str) -> Any:
        found = self.fields.get(name)
        return found.value if found else None

    def raw(self, name: str) -> str:
        """Return the JSON text of a field."""
        found = self.fields[name]
        return self.body[found.start : found.end].decode()

    @property
    def items(self) -> list[str]:
        """The JSON texts of the messages or items after the instructions."""
        pieces = self.conversation.cut
        return [pieces.item(number) for number in range(self.frame_count, len(pieces.spans))]

    @property
    def parts(self) -> Sequence[Part]:
        """Those of the items; `item` counts in them."""
        return self.indexed_parts.parts

    @property
    def indexed_parts(self) -> IndexedParts:
        return self.conversation.parts

    @property
    def frame_count(self) -> int:
        """How many messages before `items` are instructions."""
        return self.conversation.frame_count

    @property
    def model(self) -> str:
        return str(self.value("model") or "")

    @property
    def streams(self) -> bool:
        return self.value("stream") is True

    @property
    def hidden_parts(self) -> Sequence[Anchored]:
        return self.indexed_parts.hidden

    @property
    def digests(self) -> Sequence[bytes]:
        return self.indexed_parts.digests

    @property
    def nodes(self) -> Sequence[int]:
        """The digests as they are looked up."""
        return self.indexed_parts.nodes

    @property
    def root(self) -> bytes:
        return self.indexed_parts.root

    @property
    def end(self) -> bytes:
        """The root of what follows."""
        return self.indexed_parts.end

    @property
    def frame(self) -> Mapping[str, str]:
        """The request's fields other than its messages, as JSON texts."""
        return self.says.texts

    @property
    def tools(self) -> int:
        """A hash of the names of its tools; 0 without any."""
        return self.says.tools

    def blocks(self, item: int) -> list[str]:
        """Return the JSON texts of a message's blocks."""
        return self.dialect.blocks(self.conversation.cut.item(self.frame_count + item))


def _read(dialect: Dialect, owner: bytes, body: bytes, recent: Recent) -> tuple[Frame, ReadItems]:
    like = recent.like(owner, body)
    reader = None if like else list_in(body, dialect.items)
    if like is None and reader is None:
        says = Frame.read(dialect, b"", body)
        found = dialect.items_without_list(says.fields)
        whole = Cut(b"", body, b"", [(each.start, each.end) for each in found])
        return says, _parts(dialect, owner, whole, [each.value for each in found], None)
    head = like.head if like else body[: reader.place] if reader else b""
    known = recent.find(owner, body, len(head))
    tail = known.cut.tail if known else like.tail if like else b""
    pieces, values = cut(body, head, reader=reader, known=known.cut if known else None, tail=tail)
    read = _parts(dialect, owner, pieces, values, known)
    return _frame(dialect, pieces, read.frame_count, recent), read


def _parts(dialect: Dialect, owner: bytes, pieces: Cut, values: Sequence[Any], known: ReadItems | None) -> ReadItems:
    """Read items. `known` holds the first ones, if they were read before; `values` are the others."""
    count = known.frame_count if known else dialect.frame_items(values)
    begin = len(known.cut.spans) - count if known else 0
    new = dialect.parts(values if known else values[count:])
    new = [part._replace(item=part.item + begin) for part in new] if begin else new
    parts = (known.parts if known else IndexedParts(owner)).followed_by(new)
    return ReadItems(owner, pieces, count, parts, known.restored if known else None)


def _frame(dialect: Dialect, pieces: Cut, count: int, recent: Recent) -> Frame:
    """Read what stands around a list, and the first items, which are instructions."""
    instructions = pieces.items[: pieces.spans[count - 1][1]] if count else b""
    key = (dialect.name, pieces.head, pieces.tail, instructions)
    found = recent.frames.get(key)
    if found is None:
        found = Frame.read(dialect, pieces.head, pieces.tail)
        if count:
            found = found.with_instructions(dialect, [pieces.item(number) for number in range(count)])
        recent.frames.put(key, found, len(pieces.head) + len(pieces.tail) + len(instructions))
    return found
