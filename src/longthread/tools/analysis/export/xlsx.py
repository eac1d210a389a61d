"""XLSX: one sheet, written row by row. Texts are inline strings, which no program takes for formulas."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Sequence
from typing import BinaryIO
from xml.sax.saxutils import escape

from longthread.errors import ResultTooLong
from longthread.tools.analysis.cell import cut
from longthread.tools.analysis.export.table import Cell

ROWS = 1_048_576
"""Rows that a sheet holds, with its header."""
_CHARACTERS = 32_000
"""Characters of a cell: programs take 32,767, and the note of a cut needs some."""
_EXACT = 2**53
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


def write_xlsx(columns: Sequence[str], rows: Iterable[Sequence[Cell]], to: BinaryIO) -> int:
    """Writes a header and the rows. A text that is longer than a cell can be is cut, and says so. Raises ResultTooLong
    for more rows than a sheet holds."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as book:
        for name, part in _PARTS.items():
            book.writestr(name, _HEAD + part)
        count = 0
        with book.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as sheet:
            sheet.write(f"{_HEAD}{_SHEET}{_row(columns)}".encode())
            for row in rows:
                count += 1
                if count >= ROWS:
                    raise ResultTooLong(most=f"{ROWS - 1:,}")
                sheet.write(_row(row).encode())
            sheet.write(b"</sheetData></worksheet>")
    return count


def _row(row: Sequence[Cell]) -> str:
    return f"<row>{''.join(_cell(value) for value in row)}</row>"


def _cell(value: Cell) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, float) or (isinstance(value, int) and abs(value) <= _EXACT):
        return f"<c><v>{value!r}</v></c>"
    text = escape(_NOT_XML.sub("\ufffd", cut(str(value), _CHARACTERS)))
    return f'<c t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'
