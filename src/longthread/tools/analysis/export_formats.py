"""Writes a result as XLSX or Parquet.

XLSX is one sheet, written row by row, its numbers and dates in their columns' formats. Texts are inline strings, never
formulas. Parquet is written through DuckDB. Columns of integers, decimals, doubles or booleans have that type; all
others are text.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO, NamedTuple
from xml.sax.saxutils import escape

import duckdb

from longthread.errors import InvalidInput, ResultTooLong
from longthread.tools.analysis.column_format import NUMERIC, ColumnFormat, without_tail
from longthread.tools.analysis.export import SAMPLED, ExportCell, formats_of
from longthread.tools.analysis.isolation.wire import pack_row, unpack_row
from longthread.tools.analysis.quoting import UniqueNames, literal, quote_identifier
from longthread.tools.analysis.result import cut, fits, is_finite, number_text

ROWS = 1_048_576
"""Rows that a sheet holds, with its header."""
_CHARACTERS = 32_000
"""Characters of a cell: programs take 32,767, less a note of a cut."""
_LARGEST_SHOWN = 10**15
"""Programs show fifteen digits; a larger number may be an id."""
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.0+)?)?)?")
"""A day, or a moment to the second: programs show no fractions of it."""
_DAY_ZERO = datetime(1899, 12, 30)
_FIRST_DAY = datetime(1900, 3, 1)
"""Programs count the days before it in another way."""
_FIRST_CODE = 164
"""The first number of a format that is a file's own."""
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_PARTS = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
    '<Override PartName="/xl/worksheets/sheet1.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
    '<Override PartName="/xl/styles.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/></Types>',
    "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="rId1" Target="xl/workbook.xml" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>',
    "xl/workbook.xml": '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">'
    '<sheets><sheet name="Result" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="rId1" Target="worksheets/sheet1.xml" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"/>'
    '<Relationship Id="rId2" Target="styles.xml" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles"/></Relationships>',
}
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_STYLES = (
    '<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><numFmts count="{count}">{codes}'
    '</numFmts><fonts count="1"><font/></fonts><fills count="2"><fill><patternFill patternType="none"/></fill><fill>'
    '<patternFill patternType="gray125"/></fill></fills><borders count="1"><border/></borders>'
    '<cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="{uses}"><xf xfId="0"/>{xfs}</cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)
_SHEET = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'


def write_xlsx(
    columns: Sequence[str],
    rows: Iterable[Sequence[ExportCell]],
    to: BinaryIO,
    formats: Mapping[str, ColumnFormat],
) -> int:
    """Writes a header and the rows. If a cell cannot hold one number of a column, the whole column is text. Long texts
    are cut with a note. Raises ResultTooLong above the rows of a sheet."""
    sample: list[Sequence[ExportCell]] = []
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as lines:
        count, numeric = 0, [True] * len(columns)
        for row in rows:
            count += 1
            if count >= ROWS:
                raise ResultTooLong(most=f"{ROWS - 1:,}")
            if count <= SAMPLED:
                sample.append(row)
            numeric = [is_numeric and _fits_cell(value) for is_numeric, value in zip(numeric, row, strict=True)]
            lines.write(json.dumps(pack_row(row)) + "\n")
        lines.seek(0)
        found = formats_of(columns, sample, formats)
        codes = [_code(each, [row[at] for row in sample]) for at, each in enumerate(found)]
        _write(columns, (unpack_row(json.loads(line)) for line in lines), numeric, codes, to)
    return count


def _code(format_: ColumnFormat, cells: Sequence[ExportCell]) -> str:
    """The code of a column's format; empty for texts."""
    if format_.kind not in NUMERIC:
        texts = [cell for cell in cells if cell is not None]
        if not texts or not all(isinstance(text, str) and _MOMENT.fullmatch(text) for text in texts):
            return ""
        days = format_.kind == "date" or all(len(str(text)) == len("2024-01-05") for text in texts)
        return "yyyy-mm-dd" if days else "yyyy-mm-dd hh:mm:ss"
    digits = "0" if format_.kind in ("plain", "percent", "share") else "#,##0"
    places = f".{'0' * format_.places}" if format_.places else ""
    before, behind = ("", "%") if format_.kind == "share" else map(_quote, format_.affixes)
    return f"{before}{digits}{places}{behind}"


def _quote(text: str) -> str:
    """A text in a format's code, which has no sign for a quote in it."""
    return f'"{text.replace(chr(34), chr(39) * 2)}"' if text else ""


def _styles(codes: Sequence[str]) -> str:
    different = sorted({code for code in codes if code})
    entries = {'"': "&quot;"}
    formats = "".join(
        f'<numFmt numFmtId="{_FIRST_CODE + at}" formatCode="{escape(code, entries)}"/>'
        for at, code in enumerate(different)
    )
    uses = "".join(
        f'<xf numFmtId="{_FIRST_CODE + at}" applyNumberFormat="1" xfId="0"/>' for at in range(len(different))
    )
    styles = _STYLES.format(count=len(different), codes=formats, uses=len(different) + 1, xfs=uses)
    return styles if different else re.sub("<numFmts.*?</numFmts>", "", styles)


def _write(
    columns: Sequence[str],
    rows: Iterable[Sequence[ExportCell]],
    numeric: Sequence[bool],
    codes: Sequence[str],
    to: BinaryIO,
) -> None:
    styles = [_Style(is_numeric, code, _place_of(code, codes)) for is_numeric, code in zip(numeric, codes, strict=True)]
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as book:
        for name, part in {**_PARTS, "xl/styles.xml": _styles(codes)}.items():
            book.writestr(name, _HEAD + part)
        with book.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as sheet:
            sheet.write(f"{_HEAD}{_SHEET}{_row(columns, [_Style(False, '', 0)] * len(columns))}".encode())
            for row in rows:
                sheet.write(_row(row, styles).encode())
            sheet.write(b"</sheetData></worksheet>")


def _place_of(code: str, codes: Sequence[str]) -> int:
    return 1 + sorted({each for each in codes if each}).index(code) if code else 0


class _Style(NamedTuple):
    """How the cells of a column are written: whether its numbers are numbers, the code of its format, its place among
    the styles."""

    is_numeric: bool
    code: str
    place: int


def _fits_cell(value: ExportCell) -> bool:
    """Whether a cell, which is a double, can hold a value."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return True
    return fits(value, rounded=True) and not (is_finite(value) and abs(int(value)) >= _LARGEST_SHOWN)


def _row(row: Sequence[ExportCell], styles: Sequence[_Style]) -> str:
    return f"<row>{''.join(_cell(value, style) for value, style in zip(row, styles, strict=True))}</row>"


def _cell(value: ExportCell, style: _Style) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    styled = f' s="{style.place}"' if style.place else ""
    if isinstance(value, str):
        text, day = value, _day_number(value) if style.code.startswith("yyyy") else None
        if day is not None:
            return f"<c{styled}><v>{day}</v></c>"
    else:
        text = number_text(without_tail(value) if isinstance(value, float) else value)
        if style.is_numeric and is_finite(value):
            return f"<c{styled}><v>{text}</v></c>"
    inner = escape(_NOT_XML.sub("\ufffd", cut(text, _CHARACTERS)))
    return f'<c t="inlineStr"><is><t xml:space="preserve">{inner}</t></is></c>'


def _day_number(text: str) -> str | None:
    """A day or a moment as programs count them; None where they cannot."""
    if not _MOMENT.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment < _FIRST_DAY:
        return None
    passed = moment - _DAY_ZERO
    return repr(passed.days + passed.seconds / 86_400) if passed.seconds else str(passed.days)


_LARGEST_INTEGER = 2**63
_DIGITS = 38
"""Digits of the widest decimal."""
_LINE = 512_000_000
"""Bytes of one row as JSON."""


def write_parquet(columns: Sequence[str], rows: Iterable[Sequence[ExportCell]], to: BinaryIO) -> int:
    """Writes the rows under unique column names. Raises InvalidInput for a result without columns."""
    if not columns:
        raise InvalidInput(reason="The result has no columns, and a Parquet file has one at least. Write it as CSV.")
    with tempfile.TemporaryDirectory(prefix="longthread-export-") as folder:
        lines, made = Path(folder) / "rows.jsonl", Path(folder) / "rows.parquet"
        found = [_ColumnTypes() for _ in columns]
        count = 0
        with lines.open("w", encoding="utf-8", errors="replace") as file:
            for row in rows:
                count += 1
                for one, value in zip(found, row, strict=True):
                    one.add(value)
                line = {f"c{n}": _json_value(value) for n, value in enumerate(row)}
                file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
        names = UniqueNames()
        _convert(lines, made, [names.take(column or "column") for column in columns], [one.type for one in found])
        with made.open("rb") as file_:
            shutil.copyfileobj(file_, to)
    return count


def _convert(lines: Path, made: Path, names: Sequence[str], types: Sequence[str]) -> None:
    given = ", ".join(f"c{n}: {literal(type_)}" for n, type_ in enumerate(types))
    chosen = ", ".join(f"c{n} AS {quote_identifier(name)}" for n, name in enumerate(names))
    reader = f"read_json({literal(str(lines))}, format = 'newline_delimited', columns = {{{given}}}, "
    reader += f"maximum_object_size = {min(_LINE, max(16_777_216, lines.stat().st_size + 1))})"
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"COPY (SELECT {chosen} FROM {reader}) TO {literal(str(made))} (FORMAT parquet)")


def _json_value(value: ExportCell) -> str | int | float | None:
    """A value as JSON; a number that no double holds is a text."""
    exact = isinstance(value, Decimal) or (isinstance(value, float) and not math.isfinite(value))
    return number_text(value) if exact else value  # type: ignore[arg-type, return-value]


class _ColumnTypes:
    """The types of one column's values."""

    def __init__(self) -> None:
        self._kinds: set[type] = set()
        self._whole = self._behind = 0
        """The most digits before and after the point."""
        self._fit = True
        """Whether doubles hold the exact numbers."""

    def add(self, value: ExportCell) -> None:
        if isinstance(value, int | Decimal):
            self._fit = self._fit and fits(value, rounded=True)
        if isinstance(value, int) and not -_LARGEST_INTEGER <= value < _LARGEST_INTEGER:
            self._kinds.add(str)
        elif isinstance(value, Decimal):
            self._add_decimal(value)
        elif value is not None:
            self._kinds.add(type(value))

    def _add_decimal(self, value: Decimal) -> None:
        _, digits, exponent = value.as_tuple()
        self._kinds.add(Decimal if isinstance(exponent, int) else str)
        if isinstance(exponent, int):
            self._whole = max(self._whole, len(digits) + exponent, 0)
            self._behind = max(self._behind, -exponent)

    @property
    def type(self) -> str:
        """The DuckDB type for all values."""
        kinds = self._kinds
        if kinds == {bool}:
            return "BOOLEAN"
        if kinds == {int}:
            return "BIGINT"
        width = max(1, self._whole + self._behind)
        if kinds == {Decimal}:
            return f"DECIMAL({width}, {self._behind})" if width <= _DIGITS else "VARCHAR"
        return "DOUBLE" if kinds and kinds <= {int, float, Decimal} and self._fit else "VARCHAR"
