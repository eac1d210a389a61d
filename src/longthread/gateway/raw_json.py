"""JSON with the place of each value in its text, so that a change leaves everything else byte for byte.

The bytes of a request's body are cut around the list of its messages or items. Only what is not known yet is decoded
and parsed. In a long conversation that is little.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, AnyStr, NamedTuple

_BLANK = re.compile(r"[ \t\n\r]*")
_TOKENS = frozenset({"authorization_token"})
_OF_SERVERS = _TOKENS | {"authorization", "headers"}
_CREDENTIALS = re.compile(r'"(?:authorization|authorization_token|headers)"', re.IGNORECASE)
_decode = json.JSONDecoder(strict=False).raw_decode


class Value(NamedTuple):
    """A parsed value, and where its text begins and ends."""

    value: Any
    start: int
    end: int


def members(
    text: str,
    start: int = 0,
    *,
    lists: frozenset[str] = frozenset(),
    read_list: Callable[[str, int], Value] | None = None,
) -> Iterator[tuple[str, Value]]:
    """Yield the members of the object at `start`, in order; of one that is repeated, each.

    The value of a list under a name in `lists` is a list of `Value`: `read_list` reads it, or else `elements`. Raises
    ValueError: it is no JSON object.
    """
    at = skip_blank(text, start)
    expect(text, at, "{")
    at = skip_blank(text, at + 1)
    while text[at : at + 1] != "}":
        expect(text, at, '"')
        name, _, at = value_at(text, at)
        at = skip_blank(text, at)
        expect(text, at, ":")
        at = skip_blank(text, at + 1)
        is_listed = name in lists and text[at : at + 1] == "["
        found = (read_list or elements)(text, at) if is_listed else value_at(text, at)
        yield name, found
        at = next_place(text, found.end, "}")


def elements(text: str, start: int = 0, known: Sequence[Value] = ()) -> Value:
    """Return the list at `start`, with each element as a `Value`. The first ones may be `known`. Raises ValueError: it
    is no JSON list."""
    begin = skip_blank(text, start)
    expect(text, begin, "[")
    found = [*known]
    at = next_place(text, found[-1].end, "]") if found else skip_blank(text, begin + 1)
    while text[at : at + 1] != "]":
        found.append(value_at(text, at))
        at = next_place(text, found[-1].end, "]")
    return Value(found, begin, at + 1)


def element_texts(text: str, start: int = 0) -> list[tuple[Any, str]]:
    """Return the elements of the list at `start`, each parsed and as its text. Raises ValueError."""
    return [(each.value, text[each.start : each.end]) for each in elements(text, start).value]


def field_block(name: str, raw: str) -> str:
    """Return a message's field as a block of its own, as entries hold it."""
    return f'{{"field":{write_json(name)},"value":{raw}}}'


def field_value(block: str) -> str:
    """Return the JSON text of the field that a block holds."""
    found = dict(members(block))["value"]
    return block[found.start : found.end]


def with_members(text: str, changes: Mapping[str, str | None]) -> str:
    """Return an object with other values of these members, as JSON texts; None leaves one out. Raises ValueError."""
    kept = {name: text[found.start : found.end] for name, found in members(text)} | dict(changes)
    return "{" + ",".join(f"{write_json(name)}:{raw}" for name, raw in kept.items() if raw is not None) + "}"


def replace_spans(text: AnyStr, changes: Iterable[tuple[int, int, AnyStr]]) -> AnyStr:
    """Return a text, or bytes, with others at places that do not overlap."""
    pieces: list[AnyStr] = []
    at = 0
    for start, end, new in sorted(changes, key=lambda change: change[0]):
        pieces += [text[at:start], new]
        at = end
    pieces.append(text[at:])
    return text[:0].join(pieces)


def write_json(value: Any) -> str:
    """Return a value of ours as JSON text. Half a character, which has no bytes, is escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


def value_at(text: str, at: int) -> Value:
    """Read the value at a place. Raises ValueError."""
    value, end = _decode(text, at)
    return Value(value, at, end)


def next_place(text: str, at: int, closing: str) -> int:
    """Return the place of the next member or element, or of the closing bracket."""
    at = skip_blank(text, at)
    if text[at : at + 1] == closing:
        return at
    expect(text, at, ",")
    return skip_blank(text, at + 1)


def skip_blank(text: str, at: int) -> int:
    """Return the place of the next character that is no blank."""
    blank = _BLANK.match(text, at)
    assert blank is not None  # it matches nothing, too
    return blank.end()


def expect(text: str, at: int, character: str) -> None:
    """Raises ValueError: another character is there."""
    if text[at : at + 1] != character:
        raise ValueError(f"It is no JSON: {character} is missing at character {at}.")


def without_credentials(raw: str) -> str:
    """Return JSON without what servers are asked with: their tokens and headers."""
    if not _CREDENTIALS.search(raw):
        return raw

    def mask(value: Any) -> Any:
        if isinstance(value, dict):
            names = _OF_SERVERS if "server_url" in value or value.get("type") in ("mcp", "url") else _TOKENS
            return {key: "***" if key.lower() in names else mask(each) for key, each in value.items()}
        return [mask(each) for each in value] if isinstance(value, list) else value

    return write_json(mask(json.loads(raw, strict=False)))


@dataclass(frozen=True, slots=True)
class Cut:
    """A body in pieces.

    Attributes:
        head: what stands before the list. A body without one has neither head nor tail.
        items: the list up to the end of its last item.
        tail: what stands after that.
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
        """Go past an opening bracket or a colon. Raise ValueError if there is none."""
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
    """Cut a body around the list after its `head`. Also return the values of the items that are not known.

    Args:
        reader: it is at the list, if something read up to there.
        known: its items are the list's first ones.
        tail: what may stand after the last item, so that it need not be decoded.

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
    """Read a list's elements: all of them, or the ones after the element that ends where the reader is."""
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
    """Read a list's elements if `tail` follows the last one; otherwise return None."""
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
