"""CSV in UTF-8, by RFC 4180. Texts that look like formulas are escaped."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from typing import BinaryIO

from longthread.tools.analysis.cell import number_text
from longthread.tools.analysis.export.cells import ExportCell, harmless
from longthread.tools.analysis.formats.written import without_tail

_MARK = "\ufeff"
_SPECIAL = re.compile(r'[,"\r\n]')


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
    return (",".join(map(_quoted, fields)) or '""' * len(fields)) + "\r\n"


def _quoted(field: str | None) -> str:
    if field is None:
        return ""
    return f'"{field.replace(chr(34), 2 * chr(34))}"' if not field or _SPECIAL.search(field) else field


def _field(value: ExportCell) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        return value and harmless(value)
    return number_text(without_tail(value) if isinstance(value, float) else value)
