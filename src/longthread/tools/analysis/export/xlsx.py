"""XLSX: one sheet, written row by row. Texts are inline strings, never formulas."""

from __future__ import annotations

import json
import re
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import BinaryIO
from xml.sax.saxutils import escape

from longthread.errors import ResultTooLong
from longthread.tools.analysis.cell import cut, fits, is_finite, number_text
from longthread.tools.analysis.export.table import ExportCell
from longthread.tools.analysis.isolation.wire import packed, unpacked

ROWS = 1_048_576
"""Rows that a sheet holds, with its header."""
_CHARACTERS = 32_000
"""Characters of a cell: programs take 32,767, less a note of a cut."""
_LARGEST = 10**15
"""Programs show fifteen digits; a larger number may be an id."""
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_PARTS = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
    '<Override PartName="/xl/worksheets/sheet1.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>',
    "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="rId1" Target="xl/workbook.xml" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>',
    "xl/workbook.xml": '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">'
    '<sheets><sheet name="Result" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="rId1" Target="worksheets/sheet1.xml" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"/></Relationships>',
}
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_SHEET = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'


def write_xlsx(columns: Sequence[str], rows: Iterable[Sequence[ExportCell]], to: BinaryIO) -> int:
    """Writes a header and the rows. If a cell cannot hold one number of a column, the whole column is text. Long texts
    are cut with a note. Raises ResultTooLong above the rows of a sheet."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as lines:
        count, numeric = 0, [True] * len(columns)
        for row in rows:
            count += 1
            if count >= ROWS:
                raise ResultTooLong(most=f"{ROWS - 1:,}")
            numeric = [is_numeric and _fits_cell(value) for is_numeric, value in zip(numeric, row, strict=True)]
            lines.write(json.dumps(packed(row)) + "\n")
        lines.seek(0)
        _write(columns, (unpacked(json.loads(line)) for line in lines), numeric, to)
    return count


def _write(columns: Sequence[str], rows: Iterable[Sequence[ExportCell]], numeric: Sequence[bool], to: BinaryIO) -> None:
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as book:
        for name, part in _PARTS.items():
            book.writestr(name, _HEAD + part)
        with book.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as sheet:
            sheet.write(f"{_HEAD}{_SHEET}{_row(columns, numeric)}".encode())
            for row in rows:
                sheet.write(_row(row, numeric).encode())
            sheet.write(b"</sheetData></worksheet>")


def _fits_cell(value: ExportCell) -> bool:
    """Whether a cell, which is a double, can hold a value."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return True
    return fits(value, rounded=True) and not (is_finite(value) and abs(int(value)) >= _LARGEST)


def _row(row: Sequence[ExportCell], numeric: Sequence[bool]) -> str:
    return f"<row>{''.join(_cell(value, as_number) for value, as_number in zip(row, numeric, strict=True))}</row>"


def _cell(value: ExportCell, as_number: bool) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str):
        text = value
    else:
        text = number_text(value)
        if as_number and is_finite(value):
            return f"<c><v>{text}</v></c>"
    inner = escape(_NOT_XML.sub("\ufffd", cut(text, _CHARACTERS)))
    return f'<c t="inlineStr"><is><t xml:space="preserve">{inner}</t></is></c>'
