"""Make a text shorter by its structure, and say that it was done."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

ITEMS = 10
"""Items that a condensed list keeps (document 001 §4)."""
TOOL_MAX = 200
"""Characters that a condensed tool result keeps (document 004, MEMORY_CONDENSED_TOOL_MAX)."""

_TRUNCATED = "... (truncated)"


def condense_result(text: str, limit: int = TOOL_MAX) -> str:
    """A tool's result, its lists cut to their first items and the whole to `limit` characters."""
    if len(text) <= limit:
        return text
    with suppress(ValueError):  # not JSON: only its length can be cut
        text = json.dumps(_shorten(json.loads(text)), ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= limit else text[:limit] + _TRUNCATED


def is_condensable(text: str, limit: int = TOOL_MAX) -> bool:
    """Whether `condense_result` changes a text."""
    return len(text) > limit and not (len(text) == limit + len(_TRUNCATED) and text.endswith(_TRUNCATED))


def cut_middle(text: str, limit: int) -> str:
    """A text of at most about `limit` characters: its beginning, a note of what is left out, its end."""
    if len(text) <= limit:
        return text
    keep = max(0, limit - 60)
    head, tail = keep - keep // 3, keep // 3
    return f"{text[:head]}\n… ({len(text) - head - tail} characters left out) …\n{text[len(text) - tail :]}"


def _shorten(value: Any) -> Any:
    if isinstance(value, list):
        shown = [_shorten(item) for item in value[:ITEMS]]
        return shown if len(value) <= ITEMS else [*shown, f"… ({ITEMS} of {len(value)})"]
    if isinstance(value, dict):
        return {key: _shorten(item) for key, item in value.items()}
    return value
