"""Summarises tool observations in a few words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


def findings(data: Any, rows: str) -> Iterator[str]:
    """Yield the findings of an analysis tool's data; `rows` has the words for one and several rows, split by `|`."""
    if not isinstance(data, Mapping):
        return
    if isinstance(data.get("rows"), list) and "sql" in data:
        yield f"[{data.get('query', 'SQL')}] {_count(data, rows)}: {short(data['rows'])}"
    elif "columns" in data and "table_name" in data:
        yield f"{data['table_name']}: {column_names(data['columns'])}"
    elif isinstance(data.get("tables"), list):
        yield ", ".join(map(str, data["tables"][:20])) + (" …" if len(data["tables"]) > 20 else "")


def _count(data: Mapping[str, Any], rows: str) -> str:
    count = len(data["rows"])
    one, _, many = rows.partition("|")
    shown, _, total = str(data.get("shown", count)).partition(" of ")
    if total in ("", shown):
        return f"{shown} {one if shown == '1' else many or one}"
    return f"{shown}+ {many or one}" if not total.isdecimal() else f"{shown}/{total} {many or one}"


def column_names(columns: Any, most: int = 20) -> str:
    given = columns if isinstance(columns, list | tuple) else []
    names = [str(column.get("name", "?") if isinstance(column, Mapping) else column) for column in given]
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")


def short(value: Any, limit: int = 160) -> str:
    text = ""
    for piece in _ENCODER.iterencode(value):  # piece by piece: a result may be long
        text += piece
        if len(text) > limit:
            return f"{text[:limit]}…"
    return text
