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
_HALVES = re.compile("[\ud800-\udfff]")
_DIGITS = 18
"""Of a whole number that fits into 64 bits, its sign among them."""


def condense_result(text: str, limit: int = TOOL_MAX) -> str:
    """A tool's result, its lists cut to their first items and the whole to `limit` characters and a note of that."""
    if not is_condensable(text, limit):
        return text
    shorter = _by_structure(text)
    if shorter is not None and len(shorter) < len(text):
        text = shorter
    return text if len(text) <= limit else text[:limit] + _TRUNCATED


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


def _by_structure(text: str) -> str | None:
    """JSON with fewer items, each as it was written; None where it is none, or is nested too deep to be read."""
    try:
        value = json.loads(text, parse_int=_whole, parse_float=_literal, parse_constant=_literal)
        return orjson.dumps(_shorten(value)).decode()
    except (ValueError, RecursionError, orjson.JSONEncodeError):
        return None


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
