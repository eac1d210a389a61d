"""A result, row by row, on its way into a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, BinaryIO

from longthread.tools.analysis.cell import json_cell

_CELL = 100_000_000
"""Characters of one cell: it is given whole."""

Cell = str | int | float | bool | None


class Format(StrEnum):
    """What a result is written as."""

    CSV = "csv"
    PARQUET = "parquet"
    XLSX = "xlsx"


def write(format_: Format, columns: Sequence[str], rows: Iterable[Sequence[Any]], to: BinaryIO) -> int:
    """Writes a result, and returns how many rows it had. Raises ResultTooLong when a sheet cannot hold them."""
    # Here: each needs something that the others do not.
    if format_ is Format.CSV:
        from longthread.tools.analysis.export.csv import write_csv

        return write_csv(columns, plain_rows(rows), to)
    if format_ is Format.XLSX:
        from longthread.tools.analysis.export.xlsx import write_xlsx

        return write_xlsx(columns, plain_rows(rows), to)
    from longthread.tools.analysis.export.parquet import write_parquet

    return write_parquet(columns, plain_rows(rows), to)


def plain_rows(rows: Iterable[Sequence[Any]]) -> Iterator[list[Cell]]:
    """Rows of texts, numbers, truths and nothing; lists and structs as JSON, dates as ISO text."""
    for row in rows:
        yield [_plain(json_cell(value, _CELL)[0]) for value in row]


def _plain(value: Any) -> Cell:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def harmless(text: str) -> str:
    """A text that a spreadsheet does not take for a formula: one that begins like one gets an apostrophe, also behind
    spaces, which some programs cut off."""
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text
