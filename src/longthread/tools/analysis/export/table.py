"""Writes a result into a file, row by row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any, BinaryIO

from longthread.tools.analysis.cell import Binary, hexadecimal, plain
from longthread.tools.analysis.formats.column_format import PREFIXED, ColumnFormat

ExportCell = str | int | float | Decimal | bool | None


class TableFormat(StrEnum):
    """The format of a result's file."""

    CSV = "csv"
    PARQUET = "parquet"
    XLSX = "xlsx"


def write(
    format_: TableFormat,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    to: BinaryIO,
    *,
    binary: Binary = hexadecimal,
    marked: bool = False,
    formats: Mapping[str, ColumnFormat] | None = None,
    shown: bool = False,
) -> int:
    """Writes a result; returns the number of rows. `marked` adds a UTF-8 mark to a CSV file, for Excel. `formats` are
    those of columns by name, for a sheet, and for a CSV file whose cells are `shown` as on the page; others are
    guessed. Raises ResultTooLong: a sheet cannot hold the rows."""
    plain_ = plain_rows(rows, binary)
    # Imported here: each format needs other libraries.
    if format_ is TableFormat.CSV:
        from longthread.tools.analysis.export.csv import write_csv

        if shown:
            from longthread.tools.analysis.export.formatted import shown_rows

            return write_csv(columns, shown_rows(columns, plain_, formats or {}), to, marked=marked)
        return write_csv(columns, plain_, to, marked=marked)
    if format_ is TableFormat.XLSX:
        from longthread.tools.analysis.export.xlsx import write_xlsx

        return write_xlsx(columns, plain_, to, formats or {})
    from longthread.tools.analysis.export.parquet import write_parquet

    return write_parquet(columns, plain_, to)


def plain_rows(rows: Iterable[Sequence[Any]], binary: Binary) -> Iterator[list[ExportCell]]:
    """Converts rows to texts, numbers, booleans and None: lists and structs to JSON, dates to ISO text."""
    for row in rows:
        values = (plain(value, binary) for value in row)
        yield [json.dumps(each, ensure_ascii=False) if isinstance(each, list | dict) else each for each in values]


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

_DIGITS = r"(\d+([.,]\d+)*|\.\d+)"
_BEFORE = "|".join(re.escape(unit) for unit in sorted(PREFIXED))
_LETTER = r"A-Za-z$＄°‰\u00a1-\u2fff\u3040-\ufefe\uffe0-\uffe6"
"""What a unit has: no operator behind a number, and no digit that makes a cell's name of a letter."""
_NEGATIVE = re.compile(
    rf"-{_DIGITS}([eE][-+]?\d+)?( ?%| ?[{_LETTER}][{_LETTER}/. ]{{0,19}})?|-[Ii]nfinity"  # a number, with its unit
    rf"|-(?![A-Z]+\$\d+$)({_BEFORE}){_DIGITS}"  # an amount of money; US$5 and A$5 without places are cells
    r"|(?=-)([-+]?\d+ (year|mon|month|day|hour|minute|second)s?( |$))*([-+]?\d+(:\d\d)+(\.\d+)?)?",  # an interval
    re.ASCII,
)


def harmless(text: str) -> str:
    """Prefixes a text that a spreadsheet would take for a formula with an apostrophe. Negative numbers stay,
    with a unit too."""
    if not text.lstrip(" ").startswith(_FORMULA) or _NEGATIVE.fullmatch(text):
        return text
    return f"'{text}"
