"""A request as the gateway reads it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from longthread.gateway.body import Cut, cut, list_in
from longthread.gateway.dialects.dialect import Dialect, RequestFields
from longthread.gateway.frame import Frame
from longthread.gateway.indexed import IndexedParts
from longthread.gateway.parts import Anchored, Part, root_of
from longthread.gateway.raw_json import replaced
from longthread.gateway.recent import ReadItems, Recent


@dataclass(frozen=True)
class Asked:
    """A model's request.

    Attributes:
        owner: who asks, by `Owners`.
        says: what it says beside its conversation.
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
            return self.with_body(replaced(self.body, [(place.start, place.end, new)]))
        head, tail = pieces.head, pieces.tail
        if place.start >= 0:
            head = replaced(head, [(place.start, place.end, new)])
        else:
            tail = replaced(tail, [(len(tail) + place.start, len(tail) + place.end, new)])
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
        """The JSON texts of the messages or items behind the instructions."""
        pieces = self.conversation.cut
        return [pieces.item(number) for number in range(self.frame_count, len(pieces.spans))]

    @property
    def parts(self) -> Sequence[Part]:
        """Those of the items; `item` counts in them."""
        return self.indexed.parts

    @property
    def indexed(self) -> IndexedParts:
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
    def hidden(self) -> Sequence[Anchored]:
        return self.indexed.hidden

    @property
    def digests(self) -> Sequence[bytes]:
        return self.indexed.digests

    @property
    def nodes(self) -> Sequence[int]:
        """The digests as they are looked up."""
        return self.indexed.nodes

    @property
    def root(self) -> bytes:
        return self.indexed.root

    @property
    def end(self) -> bytes:
        """The root of what follows."""
        return self.indexed.end

    @property
    def frame(self) -> Mapping[str, str]:
        """What the request says beside its messages, as JSON texts."""
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
        found = dialect.unlisted(says.fields)
        whole = Cut(b"", body, b"", [(each.start, each.end) for each in found])
        return says, _parts(dialect, owner, whole, [each.value for each in found], None)
    head = like.head if like else body[: reader.place] if reader else b""
    known = recent.find(owner, body, len(head))
    tail = known.cut.tail if known else like.tail if like else b""
    pieces, values = cut(body, head, reader=reader, known=known.cut if known else None, tail=tail)
    read = _parts(dialect, owner, pieces, values, known)
    return _frame(dialect, pieces, read.frame_count, recent), read


def _parts(dialect: Dialect, owner: bytes, pieces: Cut, values: Sequence[Any], known: ReadItems | None) -> ReadItems:
    """Read items, of which the first ones are known. `values` are the others."""
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
