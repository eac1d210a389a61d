"""A query's result as people read it: its cells in their formats, and its rows as a table of Markdown. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longthread.tools.analysis.formats.column_format import ColumnFormat, format_of, format_of_json, write_value


@dataclass(frozen=True)
class FormattedRows:
    """A result: its cells as JSON, how they are written, and how many rows there are."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    formats: tuple[ColumnFormat, ...]
    total: int | None
    """How many rows the query has; None: they were not counted."""

    @classmethod
    def read(cls, data: Mapping[str, Any], known: Mapping[str, ColumnFormat] | None = None) -> FormattedRows:
        """Read the data of a query's observation. Its own formats hold before the `known` ones of columns by name."""
        columns = tuple(str(name) for name in data.get("columns") or ())
        rows: Sequence[Sequence[Any]] = data.get("rows") or ()
        given = dict(known or {}) | {name: format_of_json(each) for name, each in (data.get("formats") or {}).items()}
        formats = tuple(format_of(name, [row[at] for row in rows], given.get(name)) for at, name in enumerate(columns))
        total = data.get("total")
        return cls(columns, rows, formats, len(rows) if total is None and not data.get("truncated") else total)

    @property
    def is_whole(self) -> bool:
        return self.total == len(self.rows)

    def format_cell(self, row: int, column: int) -> str:
        """Return a cell as people write it, for Markdown; a dash where there is no value."""
        cell = self.rows[row][column]
        if isinstance(cell, dict | list):
            cell = json.dumps(cell, ensure_ascii=False)
        return "—" if cell is None else escape_cell(write_value(cell, self.formats[column]))

    def strong(self, row: int, columns: Sequence[int]) -> str:
        """Return cells of a row as one name or number."""
        text = " ".join(self.format_cell(row, at) for at in columns).strip().replace("*", "\\*")
        return f"**{text}**" if text else "“”"

    def table(self, rows: int) -> str:
        """Return the first rows as a table of Markdown."""
        lines = ["| " + " | ".join(map(escape_cell, self.columns)) + " |", "|" + " --- |" * len(self.columns)]
        places = range(len(self.columns))
        lines += ["| " + " | ".join(self.format_cell(row, at) for at in places) + " |" for row in range(rows)]
        return "\n".join(lines)


def escape_cell(text: str) -> str:
    """Return a text as a cell of a table of Markdown."""
    return text.replace("|", "\\|").replace("\n", " ").replace("\r", " ")


def write_cut_note(rows: int, *, is_chinese: bool) -> str:
    """Return what stands below a table that shows the first rows alone. The page leaves it out with the table. Its
    number is set as code: it comes from no row."""
    return f"这里只列出前 ```{rows} 行```。" if is_chinese else f"Only the first ```{rows}``` are printed here."
