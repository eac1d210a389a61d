"""Condenses results of past calls with form 0, to render them as they were (see `Segment`)."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from longthread.view.condense import ITEMS, TRUNCATED, is_condensable

_SHORT = 40
"""Characters."""
_HALVES = re.compile("[\ud800-\udfff]")
_DIGITS = 18
"""Characters of a whole number that surely fits into 64 bits."""


def condense_earlier(text: str, limit: int) -> str:
    """Cuts the lists of a tool's result to their first items, and the whole to `limit` characters with a note. Totals
    and short values come first then, as the end is cut."""
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
    return text[:limit] + TRUNCATED


def _read(text: str) -> Any:
    """Parses JSON with its numbers as written, or None."""
    try:
        return json.loads(text, parse_int=_whole, parse_float=orjson.Fragment, parse_constant=orjson.Fragment)
    except (ValueError, RecursionError):
        return None


def _written(value: Any) -> str | None:
    """A value as JSON, or None."""
    try:
        return orjson.dumps(value).decode()
    except (ValueError, RecursionError, orjson.JSONEncodeError):
        return None


def _totals(value: Any, most: int) -> str:
    """The lengths of lists, the longest first, in at most `most` characters."""
    lists: list[tuple[str, int]] = []
    waiting = [("", value)]
    while waiting:
        name, inner = waiting.pop(0)
        if isinstance(inner, dict):
            waiting += inner.items()
        elif isinstance(inner, list) and len(inner) > 1:
            lists.append((name, len(inner)))
    note = ""
    for name, count in sorted(lists, key=lambda each: -each[1]):
        name = _HALVES.sub("\ufffd", name)
        longer = f"{note}, " if note else ""
        longer += f"{name}: {count} items" if name else f"{count} items"
        if len(longer) + 5 <= most:
            note = longer
    return f"… ({note}) " if note else ""


def _short_first(value: Any) -> Any:
    """Moves short values of objects before long ones."""
    if not isinstance(value, dict):
        return value
    short = {
        key: each for key, each in value.items() if not isinstance(each, (dict, list)) and len(str(each)) <= _SHORT
    }
    return short | {key: _short_first(each) for key, each in value.items() if key not in short}


def _whole(number: str) -> Any:
    return int(number) if len(number) <= _DIGITS else orjson.Fragment(number)


def _shorten(value: Any) -> Any:
    if isinstance(value, str):
        # An escape in JSON may be a lone surrogate, which cannot be sent.
        return value if value.isascii() else _HALVES.sub("\ufffd", value)
    if isinstance(value, list):
        shown = [_shorten(item) for item in value[:ITEMS]]
        return shown if len(value) <= ITEMS else [*shown, f"… ({ITEMS} of {len(value)})"]
    if isinstance(value, dict):
        return {_shorten(key): _shorten(item) for key, item in value.items()}
    return value
