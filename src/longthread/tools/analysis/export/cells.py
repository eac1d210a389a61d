"""The cells of a result's file: plain values, texts that are no formulas, and the formats of columns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain, islice
from typing import Any

from longthread.tools.analysis.cell import Binary, as_numbers, plain, render_cell
from longthread.tools.analysis.formats.column_format import PREFIXED, ColumnFormat, format_of, write_value

ExportCell = str | int | float | Decimal | bool | None

SAMPLED = 1_000
"""Rows by which formats are guessed."""
_CHARACTERS = 100
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

_DIGITS = r"(\d+([.,]\d+)*|\.\d+)"
_BEFORE = "|".join(re.escape(unit) for unit in sorted(PREFIXED))
_LETTER = r"A-Za-z$＄°‰\u00a1-\u2fff\u3040-\ufefe\uffe0-\uffe6"
"""What a unit has: no operator after a number, and no digit that makes a cell's name of a letter."""
_NEGATIVE = re.compile(
    rf"-{_DIGITS}([eE][-+]?\d+)?( ?%| ?[{_LETTER}][{_LETTER}/. ]{{0,19}})?|-[Ii]nfinity"  # a number, with its unit
    rf"|-(?![A-Z]+\$\d+$)({_BEFORE}){_DIGITS}"  # an amount of money; US$5 and A$5 without places are cells
    r"|(?=-)([-+]?\d+ (year|mon|month|day|hour|minute|second)s?( |$))*([-+]?\d+(:\d\d)+(\.\d+)?)?",  # an interval
    re.ASCII,
)


def plain_rows(rows: Iterable[Sequence[Any]], binary: Binary) -> Iterator[list[ExportCell]]:
    """Converts rows to texts, numbers, booleans and None: lists and structs to JSON, dates to ISO text."""
    for row in rows:
        values = (plain(value, binary) for value in row)
        yield [json.dumps(each, ensure_ascii=False) if isinstance(each, list | dict) else each for each in values]


def harmless(text: str) -> str:
    """Prefixes a text that a spreadsheet would take for a formula with an apostrophe. Negative numbers stay,
    with a unit too."""
    if not text.lstrip(" ").startswith(_FORMULA) or _NEGATIVE.fullmatch(text):
        return text
    return f"'{text}"


def formats_of(
    columns: Sequence[str], sample: Sequence[Sequence[ExportCell]], given: Mapping[str, ColumnFormat]
) -> list[ColumnFormat]:
    """The format of each column, with its places. A given one of numbers holds where a column has some."""
    cells = list(zip(*sample, strict=True)) if sample else [()] * len(columns)
    return [format_of(name, _as_json(column), given.get(name)) for name, column in zip(columns, cells, strict=True)]


def _as_json(column: Sequence[ExportCell]) -> list[Any]:
    return as_numbers([render_cell(cell, _CHARACTERS)[0] for cell in column])


def shown_rows(
    columns: Sequence[str], rows: Iterable[Sequence[ExportCell]], given: Mapping[str, ColumnFormat]
) -> Iterator[list[str | None]]:
    """The rows as the page shows them: each cell as text by its column's format."""
    all_rows = iter(rows)
    sample = list(islice(all_rows, SAMPLED))
    formats = formats_of(columns, sample, given)
    for row in chain(sample, all_rows):
        yield [None if cell is None else write_value(cell, of) for cell, of in zip(row, formats, strict=True)]
