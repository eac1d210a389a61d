"""Shorten a tool's result: its rows stay, and what the reader has elsewhere goes first.

Cells are cut before columns, and columns before rows. Results of past calls with form 0 are shortened as they were
(see `Segment`).
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import orjson

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
ITEMS = 10
"""Items of a condensed list (document 001 §4)."""
_CELLS = (8, 12, 16, 24, 40, 60, 100, 160, 250, 400, 1_000, 4_000, 16_000, 64_000)
"""Characters to which the texts of cells are cut."""
_LEAST, _READABLE, _WHOLE, _NAME = _CELLS[0], _CELLS[2], _CELLS[-1], _CELLS[4]
"""Characters of a cell at least, ones that stay before one more column is shown, at most, and of a column's name."""
_FEW = 3
"""Rows that stay before a second column is shown."""
_OPAQUE = re.compile(r"[0-9a-fA-F-]{16,}|\d{4}-\d\d-\d\d[T ][\d:.+Z-]+|https?://\S+|[\w-]{24,}")
"""Ids, times and addresses, which say less than other values."""


def condense_result(text: str, limit: int = TOOL_MAX) -> str:
    """Shorten a tool's result to about `limit` characters: at most ten items of a list, with its total, and a note."""
    if not is_condensable(text, limit):
        return text
    return (_condense_json(text, limit, ITEMS) or _first_lines(text, limit)) + TRUNCATED


def is_condensable(text: str, limit: int = TOOL_MAX) -> bool:
    """Whether `condense_result` shortens a text."""
    return len(text) > limit + len(TRUNCATED)


def cut_result(text: str, limit: int) -> str:
    """Shorten a tool's result to at most `limit` characters, with as many items of a list as have room; a text without
    structure loses its middle."""
    if len(text) <= limit:
        return text
    shorter = _condense_json(text, limit - len(TRUNCATED), len(text))
    return cut_middle(text, limit) if shorter is None else shorter + TRUNCATED


def cut_middle(text: str, limit: int) -> str:
    """A text of about `limit` characters: beginning, note, end."""
    if len(text) <= limit:
        return text
    keep = max(0, limit - 60)
    head, tail = keep - keep // 3, keep // 3
    return f"{text[:head]}\n… ({len(text) - head - tail} characters left out) …\n{text[len(text) - tail :]}"


def _condense_json(text: str, limit: int, most: int) -> str | None:
    """JSON of at most `limit` characters with at most `most` items of each list; its beginning where nothing of it has
    room; None for another text."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text, parse_int=_whole, parse_float=orjson.Fragment, parse_constant=orjson.Fragment)
        said = _select_told(_clean(value) if "\\u" in text else value)
        return _fit(said, limit, most) or as_json(_few(said, most))[:limit]
    except (ValueError, RecursionError, orjson.JSONEncodeError):
        return None


def _select_told(value: Any) -> Any:
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
        text = _fit(others[name], left - len(key) - 1, most) or describe_length(others[name])
        if text and len(key) + 1 + len(text) <= left:
            fields.append(f"{key}:{text}")
            left -= len(key) + len(text) + 2
    return "{" + ",".join(fields) + "}" if fields else None


def _rank(value: Any, room: int) -> tuple[int, int]:
    """Return the order of a value: lists first, the longest of them before the others; then objects, then texts. Long
    texts leave no room to others."""
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


@dataclass(frozen=True, slots=True)
class _Cell:
    """A value as JSON, and how it is cut: its text, or a note in its place."""

    whole: str
    text: str | None
    note: str

    @classmethod
    def of(cls, value: Any) -> _Cell:
        whole = as_json(value)
        if isinstance(value, str):
            return cls(whole, value, "")
        return cls(whole, None, describe_length(value) or whole)

    def size(self, most: int) -> int:
        """At least the characters of `show`."""
        if len(self.whole) <= most + 2:
            return len(self.whole)
        return len(self.note) if self.text is None else most + len(self.whole) - len(self.text)

    def show(self, most: int) -> str:
        """The value in about `most` characters; a number whole."""
        if len(self.whole) <= most + 2:
            return self.whole
        return self.note if self.text is None else as_json(f"{self.text[: most - 1]}…")


class RowList:
    """A list of JSON values; of a table with its `columns`, and the number of all rows if that is known.

    `most` is how many of them may be shown.
    """

    def __init__(self, items: Sequence[Any], most: int, columns: Sequence[str] = (), total: int | None = None) -> None:
        self._rows = [_cells(item) for item in items[:most]]
        self._columns = columns
        self._total = max(total or 0, len(items))

    def fit(self, room: int) -> str | None:
        """The first rows as JSON in at most `room` characters; of a table the fields `columns` and `rows`, and `total`
        if all are there. None where not even one row has room."""
        names, rows = self._names, len(self._rows)
        if (count := self._count(room, names, _WHOLE)) >= min(ITEMS, rows):
            return self._text(count, names, _WHOLE)
        count, wide = min(ITEMS, self._count(room, names[:2], _LEAST)), 2
        if count < min(_FEW, rows):
            count, wide = min(ITEMS, self._count(room, names[:1], _LEAST)), 1
        if not count:
            return None
        while wide < len(names) and self._count(room, names[: wide + 1], _READABLE) >= count:
            wide += 1
        # Too long for the cells from one place on: the longest that has room is right before it.
        place = bisect_right(_CELLS, False, key=lambda cell: self._count(room, names[:wide], cell) < count)
        return self._text(count, names[:wide], _CELLS[max(0, place - 1)])

    def _count(self, room: int, names: Sequence[Any], cell: int) -> int:
        """How many of the first rows have room with these columns."""
        marks = {name: len(as_json(name)) + 2 if isinstance(name, str) else 1 for name in [*names, None]}
        longest = self._note(min(len(self._rows), self._total - 1), names)
        left = room - len(self._header(set(names))) - max(len(longest), len(self._sum)) - 3
        sizes = (
            2 + sum(row[name].size(cell) + mark for name, mark in marks.items() if name in row) for row in self._rows
        )
        return bisect_right(list(accumulate(sizes)), left)

    @cached_property
    def _names(self) -> list[Any]:
        """The columns, or the fields of objects, the most informative first."""
        names = (
            range(len(self._columns)) if self._columns else dict.fromkeys(name for row in self._rows for name in row)
        )
        return sorted(names, key=self._rank)

    def _rank(self, name: Any) -> int:
        """0 for values that say something; 1 for ids, times, addresses and what is always the same; 2 for lists and
        objects."""
        cells = [row[name] for row in self._rows if name in row]
        first = next((cell for cell in cells if cell.whole != "null"), None)
        if first is not None and first.text is None and first.note != first.whole:
            return 2
        is_opaque = first is None or (first.text is not None and _OPAQUE.fullmatch(first.text) is not None)
        return int(is_opaque or (len(cells) > 1 and all(cell.whole == cells[0].whole for cell in cells)))

    def _text(self, count: int, names: Sequence[Any], cell: int) -> str:
        shown = set(names)
        rows = [_row_text(row, shown, cell) for row in self._rows[:count]]
        rows += [note] if (note := self._note(count, names)) else []
        text = f"{self._header(shown)}[{','.join(rows)}]"
        return f"{text}{self._sum}" if count == self._total else text

    def _note(self, count: int, names: Sequence[Any]) -> str:
        """What is left out; empty if nothing is."""
        notes = [f"{count} of {self._total}"] if count < self._total else []
        if not self._columns and len(names) < len(self._names):
            notes.append(f"{len(names)} of {len(self._names)} fields")
        return f'"… ({", ".join(notes)})"' if notes else ""

    @property
    def _sum(self) -> str:
        return f',"total":{self._total}' if self._columns else ""

    def _header(self, shown: set[Any]) -> str:
        if not self._columns:
            return ""
        names = [_Cell.of(name).show(_NAME) for n, name in enumerate(self._columns) if n in shown]
        if len(shown) < len(self._columns):
            names.append(f'"… ({len(shown)} of {len(self._columns)})"')
        return f'"columns":[{",".join(names)}],"rows":'


def describe_length(value: Any) -> str:
    """A list or an object in as few characters as say its length; empty for another value."""
    if not isinstance(value, list | dict) or not value:
        return ""
    return f'"… ({len(value)} {"item" if isinstance(value, list) else "field"}{"s" * (len(value) != 1)})"'


def as_json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _cells(item: Any) -> Mapping[Any, _Cell]:
    """The values of a row by place, of an object by name; another value alone by None."""
    if isinstance(item, dict):
        return {name: _Cell.of(value) for name, value in item.items()}
    if isinstance(item, list):
        return {n: _Cell.of(value) for n, value in enumerate(item)}
    return {None: _Cell.of(item)}


def _row_text(row: Mapping[Any, _Cell], shown: set[Any], cell: int) -> str:
    if None in row:
        return row[None].show(cell)
    cells = {name: each.show(cell) for name, each in row.items() if name in shown}
    if any(isinstance(name, str) for name in row):
        return "{" + ",".join(f"{as_json(name)}:{text}" for name, text in cells.items()) + "}"
    return f"[{','.join(cells.values())}]"


def condense_earlier(text: str, limit: int) -> str:
    """Cuts the lists of a tool's result to their first items, and the whole to `limit` characters with a note. Totals
    and short values come first then, as the end is cut."""
    if not is_condensable(text, limit):
        return text
    value = _read(text)
    shorter = None if value is None else _write_json(_shorten(value))
    if shorter is not None and len(shorter) < len(text):
        text = shorter
    if len(text) <= limit:
        return text
    totals = _totals(value, limit // 2)
    if totals and (sorted_ := _write_json(_short_first(_shorten(value)))) is not None:
        text = totals + sorted_
    return text[:limit] + TRUNCATED


def _read(text: str) -> Any:
    """Parses JSON with its numbers as written, or None."""
    try:
        return json.loads(text, parse_int=_whole, parse_float=orjson.Fragment, parse_constant=orjson.Fragment)
    except (ValueError, RecursionError):
        return None


def _write_json(value: Any) -> str | None:
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
