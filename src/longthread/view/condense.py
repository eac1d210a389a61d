"""Shortens a tool's result: its rows stay, and what the reader has elsewhere goes first.

A list keeps its first ten items and its total (document 001 §4). Cells are cut before columns, and columns before rows.
SQL, timings and names of tables go at once, as the call before the result has them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from longthread.view.rows import ITEMS, RowList, as_json, counted

TOOL_MAX = 200
"""Characters of a condensed tool result (document 004, MEMORY_CONDENSED_TOOL_MAX)."""
TRUNCATED = "... (truncated)"

_ELSEWHERE = frozenset(
    {"sql", "elapsed_ms", "truncated", "table_name", "source", "dialect", "fingerprint", "raw_response"}
)
"""Fields of an observation that the call, the instructions or the reply before it have."""
_TABLE = frozenset({"columns", "rows", "total"})
_COUNTS = frozenset({"row_count", "shown"})
"""Fields that the total makes redundant."""
_SHORT = 40
"""Characters of a field that stands before the longer ones."""
_LEAST_FIELD, _LEAST_TEXT = 5, 12
"""Characters of a field at least, and those below which the beginning of a long text says nothing."""
_HALVES = re.compile("[\ud800-\udfff]")
_DIGITS = 18
"""Characters of a whole number that surely fits into 64 bits."""
_DELIMITERS = ("\t", "|", ",", ";")


def condense_result(text: str, limit: int = TOOL_MAX) -> str:
    """Shorten a tool's result to about `limit` characters: at most ten items of a list, with its total, and a note."""
    if not is_condensable(text, limit):
        return text
    return (_structured(text, limit, ITEMS) or _first_lines(text, limit)) + TRUNCATED


def is_condensable(text: str, limit: int = TOOL_MAX) -> bool:
    """Whether `condense_result` shortens a text."""
    return len(text) > limit + len(TRUNCATED)


def cut_result(text: str, limit: int) -> str:
    """Shorten a tool's result to at most `limit` characters, with as many items of a list as have room; a text without
    structure loses its middle."""
    if len(text) <= limit:
        return text
    shorter = _structured(text, limit - len(TRUNCATED), len(text))
    return cut_middle(text, limit) if shorter is None else shorter + TRUNCATED


def cut_middle(text: str, limit: int) -> str:
    """A text of about `limit` characters: beginning, note, end."""
    if len(text) <= limit:
        return text
    keep = max(0, limit - 60)
    head, tail = keep - keep // 3, keep // 3
    return f"{text[:head]}\n… ({len(text) - head - tail} characters left out) …\n{text[len(text) - tail :]}"


def _structured(text: str, limit: int, most: int) -> str | None:
    """JSON of at most `limit` characters with at most `most` items of each list; its beginning where nothing of it has
    room; None for another text."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text, parse_int=_whole, parse_float=orjson.Fragment, parse_constant=orjson.Fragment)
        said = _told(_clean(value) if "\\u" in text else value)
        return _fit(said, limit, most) or as_json(_few(said, most))[:limit]
    except (ValueError, RecursionError, orjson.JSONEncodeError):
        return None


def _told(value: Any) -> Any:
    """What an observation says beyond its call; another value as it is."""
    if not isinstance(value, dict):
        return value
    error, data = value.get("error"), value.get("data")
    if value.get("ok") is True and data is not None:
        if not isinstance(data, dict):
            return data
        known = _ELSEWHERE | _COUNTS if data.get("total") is not None else _ELSEWHERE | {"row_count"}
        return {name: each for name, each in data.items() if name not in known and each not in (None, "", [], {})}
    if value.get("ok") is False and isinstance(error, dict):
        return {"error": {name: each for name, each in error.items() if name not in _ELSEWHERE}}
    return value


def _fit(value: Any, room: int, most: int) -> str | None:
    """A value as JSON in at most `room` characters; None where that is impossible."""
    if len(text := as_json(_few(value, most))) <= room:
        return text
    if isinstance(value, str):
        return _fit_text(value, room)
    if isinstance(value, list):
        return RowList(value, most).fit(room)
    return _fit_object(value, room, most) if isinstance(value, dict) else None


def _fit_object(value: Mapping[str, Any], room: int, most: int) -> str | None:
    """The short fields of an object, then its rows or lists, then what has room of the others."""
    table = _table_of(value, most)
    others = {name: each for name, each in value.items() if table is None or name not in _TABLE}
    fields: list[str] = []
    left = room - 2
    for name in [name for name, each in others.items() if not isinstance(each, list | dict)]:
        field = f"{as_json(name)}:{as_json(others[name])}"
        if len(field) <= _SHORT and len(field) + 1 <= left - room * 2 // 3:
            fields.append(field)
            left -= len(field) + 1
            del others[name]
    if table is not None:
        if (text := table.fit(left)) is None:
            text = table.fit(room - 2)
            fields, left = [], room - 2
        if text is None:
            return None
        fields.append(text)
        left -= len(text) + 1
    for name in sorted(others, key=lambda name: _rank(others[name], room)):
        if left < _LEAST_FIELD:
            break
        key = as_json(name)
        text = _fit(others[name], left - len(key) - 1, most) or counted(others[name])
        if text and len(key) + 1 + len(text) <= left:
            fields.append(f"{key}:{text}")
            left -= len(key) + len(text) + 2
    return "{" + ",".join(fields) + "}" if fields else None


def _rank(value: Any, room: int) -> tuple[int, int]:
    """Lists first, the longest of them before the others; then objects, then texts, of which long ones leave no room
    to others."""
    if isinstance(value, list):
        return 0, -len(value)
    return (1, 0) if isinstance(value, dict) else (2, int(isinstance(value, str) and len(value) > room // 2))


def _table_of(value: Mapping[str, Any], most: int) -> RowList | None:
    """The rows of an object with their columns; None for an object without."""
    columns, rows = value.get("columns"), value.get("rows")
    if not columns or not isinstance(columns, list) or not isinstance(rows, list):
        return None
    if not all(isinstance(row, list) and len(row) == len(columns) for row in rows):
        return None
    return RowList(rows, most, [str(name) for name in columns], _total_of(value))


def _total_of(value: Mapping[str, Any]) -> int | None:
    total = value.get("total")
    return total if isinstance(total, int) else None


def _fit_text(value: str, room: int) -> str | None:
    """A long text, cut in the middle: an error says its reason first, and often its remedy last."""
    keep = room - 3
    while keep >= _LEAST_TEXT:
        tail = keep // 3
        text = as_json(f"{value[: keep - tail]}…{value[len(value) - tail :]}")
        if len(text) <= room:
            return text
        keep -= len(text) - room
    return None


def _first_lines(text: str, limit: int) -> str:
    """The first lines of a text with their number, or its beginning."""
    lines = text.splitlines()
    note = f"\n… ({len(lines)} of {len(lines)} lines)"
    room = limit - len(note)
    if len(lines) < 3 or room < _LEAST_TEXT:
        return text[:limit]
    if _is_table(lines[:3]):
        width = max(_LEAST_TEXT, room // min(len(lines), ITEMS + 1) - 1)
        lines = [line if len(line) <= width else f"{line[: width - 1]}…" for line in lines[: ITEMS + 1]] + lines[
            ITEMS + 1 :
        ]
    head = "\n".join(lines)[: room + 1].rpartition("\n")[0]
    return f"{head}\n… ({head.count(chr(10)) + 1} of {len(lines)} lines)" if head else text[:limit]


def _is_table(lines: Sequence[str]) -> bool:
    return any(lines[0].count(mark) > 0 and len({line.count(mark) for line in lines}) == 1 for mark in _DELIMITERS)


def _few(value: Any, most: int, total: Any = None) -> Any:
    """A value with at most `most` items of each list; of a table `total` is the number of all rows."""
    if isinstance(value, list):
        shown = [_few(item, most) if isinstance(item, list | dict) else item for item in value[:most]]
        return shown if len(value) <= most else [*shown, f"… ({most} of {total or len(value)})"]
    if not isinstance(value, dict):
        return value
    return {key: _few(item, most, _total_of(value) if key == "rows" else None) for key, item in value.items()}


def _clean(value: Any) -> Any:
    """A value without lone surrogates, which an escape in JSON may be, and which cannot be sent."""
    if isinstance(value, str):
        return value if value.isascii() else _HALVES.sub("\ufffd", value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return {_clean(key): _clean(item) for key, item in value.items()} if isinstance(value, dict) else value


def _whole(number: str) -> Any:
    return int(number) if len(number) <= _DIGITS else orjson.Fragment(number)
