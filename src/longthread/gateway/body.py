"""The bytes of a request's body, cut around the list of its messages or items. Pure.

Only what is not known yet is decoded and parsed. In a long conversation that is little.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from longthread.gateway.raw_json import Value, expect, next_place, skip_blank, value_at


@dataclass(frozen=True, slots=True)
class Cut:
    """A body in pieces.

    Attributes:
        head: what stands before the list. A body without one has neither head nor tail.
        items: the list up to the end of its last item.
        tail: what stands behind that.
        spans: where each item begins and ends, in `items`.
    """

    head: bytes
    items: bytes
    tail: bytes
    spans: Sequence[tuple[int, int]]

    @property
    def body(self) -> bytes:
        return b"".join((self.head, self.items, self.tail))

    def item(self, number: int) -> str:
        """Return the JSON text of an item."""
        start, end = self.spans[number]
        return self.items[start:end].decode()

    def first(self, count: int) -> Cut:
        """Return the pieces without later items."""
        return Cut(self.head, self.items[: self.spans[count - 1][1]], self.tail, self.spans[:count])

    def common(self, body: bytes, start: int) -> int:
        """Return how many of the first items the list at `start` of a body has, too."""
        if body.startswith(self.items, start):
            return len(self.spans)
        if not body.startswith(self.items[: self.spans[0][1]], start):
            return 0

        def differs(number: int) -> bool:
            return not body.startswith(self.items[: self.spans[number - 1][1]], start)

        return bisect_right(range(1, len(self.spans)), False, key=differs)


class Reader:
    """Reads the JSON of a body from a place on. Places are of bytes. Its methods raise ValueError: it is none."""

    def __init__(self, body: bytes, place: int = 0, end: int | None = None) -> None:
        self._text = body[place:end].decode("utf-8")
        self._at = self._counted = 0
        self._place = place

    @property
    def place(self) -> int:
        read = self._text[self._counted : self._at]
        self._place += len(read) if self._text.isascii() else len(read.encode())
        self._counted = self._at
        return self._place

    def is_at(self, character: str) -> bool:
        return self._text.startswith(character, self._at)

    def is_last(self) -> bool:
        """Whether it is at the last character that it has."""
        return self._at == len(self._text) - 1

    def enter(self, bracket: str) -> None:
        """Go behind an opening bracket, or a colon."""
        self._at = skip_blank(self._text, self._at)
        expect(self._text, self._at, bracket)
        self._at = skip_blank(self._text, self._at + 1)

    def next(self, closing: str) -> None:
        """Go to the next element or member, or to the closing bracket."""
        self._at = next_place(self._text, self._at, closing)

    def value(self) -> Value:
        start = self.place
        value, _, self._at = value_at(self._text, self._at)
        return Value(value, start, self.place)


def list_in(body: bytes, name: str) -> Reader | None:
    """Return a reader at the list under a name in the object that a body is; None if there is no list."""
    reader = Reader(body)
    reader.enter("{")
    while not reader.is_at("}"):
        found = reader.value().value
        reader.enter(":")
        if found == name and reader.is_at("["):
            return reader
        reader.value()
        reader.next("}")
    return None


def cut(
    body: bytes, head: bytes, *, reader: Reader | None = None, known: Cut | None = None, tail: bytes = b""
) -> tuple[Cut, list[Any]]:
    """Cut a body around the list behind its `head`. Return the values of the items that are not known, too.

    Args:
        reader: it is at the list, if something read up to there.
        known: its items are the list's first ones.
        tail: what may stand behind the last item, so that it need not be decoded.

    Raises:
        ValueError: it is no JSON list.
    """
    start = len(head)
    begin = start + len(known.items) if known else start
    found = _elements_before(body, begin, tail, is_behind=known is not None) if tail else None
    if found is None:
        found = _elements(reader if reader and not known else Reader(body, begin), is_behind=known is not None)
    end = found[-1].end if found else begin if known else start + 1
    spans = [(each.start - start, each.end - start) for each in found]
    every = [*known.spans, *spans] if known else spans
    rest = tail if body.endswith(tail) and len(tail) == len(body) - end else body[end:]
    return Cut(head, body[start:end], rest, every), [each.value for each in found]


def _elements(reader: Reader, *, is_behind: bool) -> list[Value]:
    """Read a list's elements: all of them, or those behind the one that ends where the reader is."""
    if is_behind:
        reader.next("]")
    else:
        reader.enter("[")
    found: list[Value] = []
    while not reader.is_at("]"):
        found.append(reader.value())
        reader.next("]")
    return found


def _elements_before(body: bytes, begin: int, tail: bytes, *, is_behind: bool) -> list[Value] | None:
    """Read a list's elements if what stands behind the last one is `tail`; otherwise return None."""
    if not body.endswith(tail):
        return None
    end = len(body) - len(tail)
    try:
        reader = Reader(body, begin, end + tail.index(b"]") + 1)
        found = _elements(reader, is_behind=is_behind)
    except ValueError:
        return None
    is_whole = (found[-1].end if found else begin + (not is_behind)) == end and reader.is_last()
    return found if is_whole else None
