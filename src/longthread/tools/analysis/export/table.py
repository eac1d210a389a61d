"""Writes a result into a file, row by row."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, BinaryIO

from longthread.tools.analysis.cell import Binary, hexadecimal, number_text
from longthread.tools.analysis.export.cells import ExportCell, harmless, plain_rows, shown_rows
from longthread.tools.analysis.formats.column_format import ColumnFormat, without_tail

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
        from longthread.tools.analysis.export.xlsx import write_xlsx

        return write_xlsx(columns, plain_, to, formats or {})
    from longthread.tools.analysis.export.parquet import write_parquet

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
