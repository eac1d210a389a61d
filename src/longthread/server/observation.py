"""Cuts observations to what a page shows at first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

ROWS = 100
"""Rows of a result; a row is never cut."""
ITEMS = 2_000
"""Items of any other list."""
TEXT = 4_000
"""Characters of one string."""
SIZE = 256_000
"""Characters of JSON above which fewer rows are shown."""


def cut(observation: Mapping[str, Any] | None) -> tuple[dict[str, Any] | None, bool]:
    """The observation with its first rows, and whether anything was cut."""
    if observation is None:
        return None, False
    rows = ROWS
    while True:
        short: dict[str, Any] = _cut(observation, rows)
        if rows == 1 or len(json.dumps(short, ensure_ascii=False, default=str)) <= SIZE:
            return short, short != observation
        rows = max(1, rows // 4)


def _cut(value: Any, rows: int, most: int = ITEMS) -> Any:
    if isinstance(value, Mapping):
        return {key: _cut(each, rows, rows if key == "rows" else ITEMS) for key, each in value.items()}
    if isinstance(value, list):
        return [_cut(item, rows) for item in value[:most]]
    return f"{value[:TEXT]}…" if isinstance(value, str) and len(value) > TEXT else value
