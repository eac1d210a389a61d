"""Writes a result into a file, row by row: plain values, texts that are no formulas, and the formats of columns."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from itertools import chain, islice
from typing import Any, BinaryIO

from longthread.tools.analysis.column_format import PREFIXED, ColumnFormat, format_of, without_tail, write_value
from longthread.tools.analysis.result import Binary, as_numbers, hexadecimal, number_text, plain, render_cell

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


_MARK = "\ufeff"
_SPECIAL = re.compile(r'[,"\r\n]')


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
    if format_ is TableFormat.CSV:
        if shown:
            return write_csv(columns, shown_rows(columns, plain_, formats or {}), to, marked=marked)
        return write_csv(columns, plain_, to, marked=marked)
    # Imported here: each format needs other libraries.
    if format_ is TableFormat.XLSX:
        from longthread.tools.analysis.export_formats import write_xlsx

        return write_xlsx(columns, plain_, to, formats or {})
    from longthread.tools.analysis.export_formats import write_parquet

    return write_parquet(columns, plain_, to)


def write_csv(
    columns: Sequence[str], rows: Iterable[Sequence[ExportCell]], to: BinaryIO, *, marked: bool = False
) -> int:
    """Writes a header and the rows. NULL is an empty field, and an empty text has quotes; in a result with one column
    NULL has them too, since many readers skip an empty line. `marked` adds the mark by which Excel knows UTF-8."""
    text = io.TextIOWrapper(to, "utf-8", errors="replace", newline="", write_through=True)
    if marked:
        text.write(_MARK)
    text.write(_line([harmless(name) for name in columns]))
    count = 0
    for row in rows:
        text.write(_line([_field(value) for value in row]))
        count += 1
    text.detach()
    return count


def _line(fields: Sequence[str | None]) -> str:
    return (",".join(map(_quote_field, fields)) or '""' * len(fields)) + "\r\n"


def _quote_field(field: str | None) -> str:
    if field is None:
        return ""
    return f'"{field.replace(chr(34), 2 * chr(34))}"' if not field or _SPECIAL.search(field) else field


def _field(value: ExportCell) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        return value and harmless(value)
    return number_text(without_tail(value) if isinstance(value, float) else value)
