"""Writes a result into a file, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, BinaryIO

from longthread.tools.analysis.cell import Binary, hexadecimal
from longthread.tools.analysis.export.cells import plain_rows, shown_rows
from longthread.tools.analysis.export.csv import write_csv
from longthread.tools.analysis.formats.column_format import ColumnFormat


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
        from longthread.tools.analysis.export.xlsx import write_xlsx

        return write_xlsx(columns, plain_, to, formats or {})
    from longthread.tools.analysis.export.parquet import write_parquet

    return write_parquet(columns, plain_, to)
