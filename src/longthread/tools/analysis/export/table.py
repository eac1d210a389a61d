"""A result, row by row, on its way into a file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any, BinaryIO

from longthread.tools.analysis.cell import Binary, hexadecimal, plain

ExportCell = str | int | float | Decimal | bool | None


class TableFormat(StrEnum):
    """What a result is written as."""

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
) -> int:
    """Writes a result, and returns how many rows it had. `binary` is how a binary value is written. A CSV file that is
    `marked` begins with the mark by which Excel knows UTF-8. Raises ResultTooLong when a sheet cannot hold the rows."""
    plain_ = plain_rows(rows, binary)
    # Here: each needs something that the others do not.
    if format_ is TableFormat.CSV:
        from longthread.tools.analysis.export.csv import write_csv

        return write_csv(columns, plain_, to, marked=marked)
    if format_ is TableFormat.XLSX:
        from longthread.tools.analysis.export.xlsx import write_xlsx

        return write_xlsx(columns, plain_, to)
    from longthread.tools.analysis.export.parquet import write_parquet

    return write_parquet(columns, plain_, to)


def plain_rows(rows: Iterable[Sequence[Any]], binary: Binary) -> Iterator[list[ExportCell]]:
    """Rows of texts, numbers, truths and nothing; lists and structs as JSON, dates as ISO text."""
    for row in rows:
        yield [_plain(plain(value, binary)) for value in row]


def _plain(value: Any) -> ExportCell:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

_NEGATIVE = re.compile(
    r"-[$€£¥₹]?(\d+([.,]\d+)*|\.\d+)([eE][-+]?\d+)?%?|-[Ii]nfinity"  # a number, or an amount of money
    r"|(?=-)([-+]?\d+ (year|mon|month|day|hour|minute|second)s?( |$))*([-+]?\d+(:\d\d)+(\.\d+)?)?",  # an interval
    re.ASCII,
)


def harmless(text: str) -> str:
    """A text that a spreadsheet does not take for a formula: one that begins like one gets an apostrophe, also behind
    spaces, which some programs cut off. A negative number or interval is none."""
    if not text.lstrip(" ").startswith(_FORMULA) or _NEGATIVE.fullmatch(text):
        return text
    return f"'{text}"
