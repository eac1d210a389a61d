"""Shortens a list of rows: cells are cut before columns, and columns before rows."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import orjson

ITEMS = 10
"""Items of a condensed list (document 001 §4)."""

_CELLS = (8, 12, 16, 24, 40, 60, 100, 160, 250, 400, 1_000, 4_000, 16_000, 64_000)
"""Characters to which the texts of cells are cut."""
_LEAST, _READABLE, _WHOLE, _NAME = _CELLS[0], _CELLS[2], _CELLS[-1], _CELLS[4]
"""Characters of a cell at least, those that stay before one more column is shown, at most, and of a column's name."""
_FEW = 3
"""Rows that stay before a second column is shown."""
_OPAQUE = re.compile(r"[0-9a-fA-F-]{16,}|\d{4}-\d\d-\d\d[T ][\d:.+Z-]+|https?://\S+|[\w-]{24,}")
"""Ids, times and addresses, which say less than other values."""


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
        return cls(whole, None, counted(value) or whole)

    def size(self, most: int) -> int:
        """At least the characters of `shown`."""
        if len(self.whole) <= most + 2:
            return len(self.whole)
        return len(self.note) if self.text is None else most + len(self.whole) - len(self.text)

    def shown(self, most: int) -> str:
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
        """The columns, or the fields of objects, those that say most first."""
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
        names = [_Cell.of(name).shown(_NAME) for n, name in enumerate(self._columns) if n in shown]
        if len(shown) < len(self._columns):
            names.append(f'"… ({len(shown)} of {len(self._columns)})"')
        return f'"columns":[{",".join(names)}],"rows":'


def counted(value: Any) -> str:
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
        return row[None].shown(cell)
    cells = {name: each.shown(cell) for name, each in row.items() if name in shown}
    if any(isinstance(name, str) for name in row):
        return "{" + ",".join(f"{as_json(name)}:{text}" for name, text in cells.items()) + "}"
    return f"[{','.join(cells.values())}]"
