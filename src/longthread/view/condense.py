"""Make a text shorter by its structure, and say that it was done."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

ITEMS = 10
"""Items that a condensed list keeps (document 001 §4)."""
TOOL_MAX = 200
"""Characters that a condensed tool result keeps (document 004, MEMORY_CONDENSED_TOOL_MAX)."""

_TRUNCATED = "... (truncated)"
_SHORT = 40
"""Characters."""
_HALVES = re.compile("[\ud800-\udfff]")
_DIGITS = 18
"""Of a whole number that fits into 64 bits, its sign among them."""


def condense_result(text: str, limit: int = TOOL_MAX) -> str:
    """A tool's result, its lists cut to their first items and the whole to `limit` characters and a note of that. How
    many items there are stands at the beginning then, with whatever else is short: the cut takes the end."""
    if not is_condensable(text, limit):
        return text
    value = _read(text)
    shorter = None if value is None else _written(_shorten(value))
    if shorter is not None and len(shorter) < len(text):
        text = shorter
    if len(text) <= limit:
        return text
    totals = _totals(value, limit // 2)
    if totals and (sorted_ := _written(_short_first(_shorten(value)))) is not None:
        text = totals + sorted_
    return text[:limit] + _TRUNCATED


def is_condensable(text: str, limit: int = TOOL_MAX) -> bool:
    """Whether `condense_result` changes a text: makes it shorter."""
    return len(text) > limit + len(_TRUNCATED)


def cut_middle(text: str, limit: int) -> str:
    """A text of at most about `limit` characters: its beginning, a note of what is left out, its end."""
    if len(text) <= limit:
        return text
    keep = max(0, limit - 60)
    head, tail = keep - keep // 3, keep // 3
    return f"{text[:head]}\n… ({len(text) - head - tail} characters left out) …\n{text[len(text) - tail :]}"


def _read(text: str) -> Any:
    """JSON, its numbers as they were written; None where it is none, or is nested too deep to be read."""
    try:
        return json.loads(text, parse_int=_whole, parse_float=_literal, parse_constant=_literal)
    except (ValueError, RecursionError):
        return None


def _written(value: Any) -> str | None:
    """A value as JSON; None where that cannot be."""
    try:
        return orjson.dumps(value).decode()
    except (ValueError, RecursionError, orjson.JSONEncodeError):
        return None


def _totals(value: Any, most: int) -> str:
    """How many items the lists have, the longest first, in at most `most` characters."""
    lists: list[tuple[str, int]] = []
    waiting = [("", value)]
    while waiting:
        name, inner = waiting.pop(0)
        if isinstance(inner, dict):
            waiting += inner.items()
        elif isinstance(inner, list) and len(inner) > 1:
            lists.append((name, len(inner)))
    told = ""
    for name, count in sorted(lists, key=lambda each: -each[1]):
        name = _HALVES.sub("\ufffd", name)
        longer = f"{told}, " if told else ""
        longer += f"{name}: {count} items" if name else f"{count} items"
        if len(longer) + 5 <= most:
            told = longer
    return f"… ({told}) " if told else ""


def _short_first(value: Any) -> Any:
    """The value with what is short in an object before what is long: how many rows there are before the rows."""
    if not isinstance(value, dict):
        return value
    short = {
        key: each for key, each in value.items() if not isinstance(each, (dict, list)) and len(str(each)) <= _SHORT
    }
    return short | {key: _short_first(each) for key, each in value.items() if key not in short}


def _literal(number: str) -> Any:
    return orjson.Fragment(number)


def _whole(number: str) -> Any:
    return int(number) if len(number) <= _DIGITS else _literal(number)


def _shorten(value: Any) -> Any:
    if isinstance(value, str):
        # JSON may name half of a pair by its number; the text that says it so can be sent, and this could not.
        return value if value.isascii() else _HALVES.sub("\ufffd", value)
    if isinstance(value, list):
        shown = [_shorten(item) for item in value[:ITEMS]]
        return shown if len(value) <= ITEMS else [*shown, f"… ({ITEMS} of {len(value)})"]
    if isinstance(value, dict):
        return {_shorten(key): _shorten(item) for key, item in value.items()}
    return value
