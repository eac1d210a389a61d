"""The formats of a result's columns in a file: those that are given by name, and guesses by its first rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from longthread.tools.analysis.cell import as_numbers, shown
from longthread.tools.analysis.export.table import ExportCell
from longthread.tools.analysis.formats.column_format import ColumnFormat
from longthread.tools.analysis.formats.guess import format_of
from longthread.tools.analysis.formats.written import write_value

SAMPLED = 1_000
"""Rows by which formats are guessed."""
_CHARACTERS = 100


def formats_of(
    columns: Sequence[str], sample: Sequence[Sequence[ExportCell]], given: Mapping[str, ColumnFormat]
) -> list[ColumnFormat]:
    """The format of each column, with its places. A given one of numbers holds where a column has some."""
    cells = list(zip(*sample, strict=True)) if sample else [()] * len(columns)
    return [format_of(name, _as_json(column), given.get(name)) for name, column in zip(columns, cells, strict=True)]


def _as_json(column: Sequence[ExportCell]) -> list[Any]:
    return as_numbers([shown(cell, _CHARACTERS)[0] for cell in column])


def shown_rows(
    columns: Sequence[str], rows: Iterable[Sequence[ExportCell]], given: Mapping[str, ColumnFormat]
) -> Iterator[list[str | None]]:
    """The rows as the page shows them: each cell as text by its column's format."""
    all_rows = iter(rows)
    sample = list(islice(all_rows, SAMPLED))
    formats = formats_of(columns, sample, given)
    for row in chain(sample, all_rows):
        yield [None if cell is None else write_value(cell, of) for cell, of in zip(row, formats, strict=True)]
