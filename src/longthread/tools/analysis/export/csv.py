"""CSV in UTF-8, by RFC 4180. Texts that look like formulas are escaped."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import BinaryIO

from longthread.tools.analysis.cell import number_text
from longthread.tools.analysis.export.table import ExportCell, harmless

_MARK = "\ufeff"


def write_csv(
    columns: Sequence[str], rows: Iterable[Sequence[ExportCell]], to: BinaryIO, *, marked: bool = False
) -> int:
    """Writes a header and the rows; NULL is an empty field. `marked` adds the mark by which Excel knows UTF-8."""
    text = io.TextIOWrapper(to, "utf-8", errors="replace", newline="", write_through=True)
    if marked:
        text.write(_MARK)
    writer = csv.writer(text)
    writer.writerow([harmless(name) for name in columns])
    count = 0
    for row in rows:
        writer.writerow([_field(value) for value in row])
        count += 1
    text.detach()
    return count


def _field(value: ExportCell) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        return value and harmless(value)
    return number_text(value)
