"""JSON with the place of each value in its text, so that a change leaves everything else byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    return f'{{"field":{spelled(name)},"value":{raw}}}'


def field_value(block: str) -> str:
    """Return the JSON text of the field that a block holds."""
    found = dict(members(block))["value"]
    return block[found.start : found.end]


def with_members(text: str, changes: Mapping[str, str | None]) -> str:
    """Return an object with other values of these members, as JSON texts; None leaves one out. Raises ValueError."""
    kept = {name: text[found.start : found.end] for name, found in members(text)} | dict(changes)
    return "{" + ",".join(f"{spelled(name)}:{raw}" for name, raw in kept.items() if raw is not None) + "}"


def replaced(text: AnyStr, changes: Iterable[tuple[int, int, AnyStr]]) -> AnyStr:
    """Return a text, or bytes, with others at places that do not overlap."""
    pieces: list[AnyStr] = []
    at = 0
    for start, end, new in sorted(changes, key=lambda change: change[0]):
        pieces += [text[at:start], new]
        at = end
    pieces.append(text[at:])
    return text[:0].join(pieces)


def spelled(value: Any) -> str:
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

    def hidden(value: Any) -> Any:
        if isinstance(value, dict):
            names = _OF_SERVERS if "server_url" in value or value.get("type") in ("mcp", "url") else _TOKENS
            return {key: "***" if key.lower() in names else hidden(each) for key, each in value.items()}
        return [hidden(each) for each in value] if isinstance(value, list) else value

    return spelled(hidden(json.loads(raw, strict=False)))
