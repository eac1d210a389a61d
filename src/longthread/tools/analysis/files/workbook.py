"""Excel workbooks: the rows of each sheet as texts, within bounds that are checked before a workbook is read.

A sheet is read as a whole rectangle, from A1 to its last cell. Workbooks of Excel 97 to 2003 (`.xls`) are read after
[MS-CFB] (the file: sectors, and chains of them) and [MS-XLS] (the stream: records, each with its type and size).
"""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from longthread.errors import SourceUnreadable
from longthread.tools.analysis.files.notes import Note
from longthread.tools.analysis.files.number_formats import BAD_PART, CellFormats, read_cell_formats

MOST_SHEETS = 500
MOST_UNPACKED = 1_000_000_000
"""Bytes of a workbook when it is unpacked."""
MOST_CELLS = 10_000_000
"""Cells of a sheet, empty ones included, that may be mostly empty."""
MOSTLY = 20
"""A sheet is mostly empty if one cell of so many has something."""
_CELL = re.compile(rb"""<c\s(?:[^<>]*\s)?r=["']([A-Z]{1,3})([0-9]{1,7})["'][^<>]*(?<!/)>(?!\s*</c)""")
"""A cell with something in it. Cells that only have a format are not read, and may reach to the sheet's end."""
_BLOCK = 1_000_000
_OVERLAP = 256
"""Bytes that are looked at again: a cell may stand across two blocks."""
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The first bytes of such a file, and of a workbook with a password."""
MOST_BYTES = 256_000_000
"""Of a file, which is read into memory as a whole. All sheets together have as many cells as one of a new workbook."""
_END = 0xFFFFFFFA
"""Numbers from here on are no sectors."""
_ENTRY = 128
_NAMES = ("Workbook", "Book")
_ENCRYPTED = "EncryptedPackage"
_BEGIN, _STOP, _PASSWORD = 0x0809, 0x000A, 0x002F
_CELLS = frozenset({0x0006, 0x00FD, 0x0203, 0x0204, 0x0205, 0x027E})
"""Records of one cell with something in it."""
_NUMBERS = 0x00BD
"""A record of several cells next to each other."""
_ZIP = b"PK\x03\x04"
_UNKNOWN = re.compile(rb'<c (?![^<>]*t="str")[^<>]*>\s*+<f[^<>]*>[^<]*</f>\s*+(?:<v\s*+/>|<v>\s*+</v>)?\s*+</c>')
"""A formula without a value. Linear: no part of it crosses the beginning of another cell."""
_SEARCHED = 64_000_000
"""Bytes that are searched for formulas without a value."""
_EXACT = 10**15
"""Below it a number of Excel is exact."""


def expect_bounded(path: Path, source: str) -> None:
    """Raise SourceUnreadable if a workbook has too many sheets, is too large when it is unpacked, or has a stray cell
    far from the others. Raises `zipfile.BadZipFile`."""
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
        sheets = [each for each in parts if re.fullmatch(r"xl/worksheets/[^/]+\.xml", each.filename)]
        if (size := sum(each.file_size for each in parts)) > MOST_UNPACKED:
            told = f"is {size / 1e6:,.0f} MB when it is unpacked, and {MOST_UNPACKED / 1e6:,.0f} MB are read"
            raise make_refusal(path, source, f"{told}. Save a part of it as a file of its own, or as CSV.")
        if len(sheets) > MOST_SHEETS:
            told = f"has {len(sheets):,} sheets, and at most {MOST_SHEETS} are read"
            raise make_refusal(path, source, f"{told}. Save those that you need as a file of their own.")
        for number, part in enumerate(sheets, 1):
            last, cells = _extent(archive, part)
            area = last[0] * last[1]
            if area > MOST_CELLS and area > MOSTLY * cells:
                where = f"row {last[0]:,} and column {letters_of(last[1])}"
                told = f"has a sheet (number {number}) that reaches {where}, with something in {cells:,} cells only"
                advice = "Delete the stray cells at its end (Ctrl+End goes there), and save it again."
                raise make_refusal(path, source, f"{told}. {advice}")


def _extent(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> tuple[tuple[int, int], int]:
    """Return the last row and column of a sheet's cells, and how many cells there are."""
    row = column = cells = 0
    rest = b""
    with archive.open(part) as file:
        while block := file.read(_BLOCK):
            text = rest + block
            found = _CELL.findall(text)
            cells += len(found)
            column = max([column, *map(_number, {letters for letters, _ in found})])
            row = max([row, *map(int, {digits for _, digits in found})])
            rest = text[-_OVERLAP:]
    return (row, column), cells


def _number(letters: bytes) -> int:
    """Return the number of a column, such as 1 for A and 28 for AB."""
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number


def letters_of(number: int) -> str:
    """Return the letters of a column, such as AB for 28."""
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def make_refusal(path: Path, source: str, told: str) -> SourceUnreadable:
    """Return the error about a workbook."""
    return SourceUnreadable(source=source, reason=f"{path.name} {told}")


class DamagedWorkbook(ValueError):
    """It is no file of sectors, or breaks off."""


@dataclass
class _Extent:
    """What a sheet's cells reach, and how many there are."""

    cells: int = 0
    rows: int = 0
    columns: int = 0

    def add(self, row: int, first: int, last: int) -> None:
        self.cells += last - first + 1
        self.rows = max(self.rows, row + 1)
        self.columns = max(self.columns, last + 1)

    @property
    def area(self) -> int:
        return self.rows * self.columns


def expect_bounded_old(path: Path, source: str) -> None:
    """Raise SourceUnreadable if such a workbook has a password, is too large, or has stray cells far from the others;
    DamagedWorkbook if it is damaged."""
    if (size := path.stat().st_size) > MOST_BYTES:
        told = f"has {size / 1e6:,.0f} MB, and {MOST_BYTES / 1e6:,.0f} MB of an .xls file are read"
        raise make_refusal(path, source, f"{told}. Save it as .xlsx.")
    streams = _streams(path.read_bytes())
    stream = next((streams[name] for name in _NAMES if name in streams), None)
    if stream is None and _ENCRYPTED in streams:
        raise make_refusal(path, source, "has a password. Save it without one.")
    if stream is None:
        raise DamagedWorkbook("it holds no workbook")
    sheets = [*_sheets(path, source, stream)]
    if len(sheets) - 1 > MOST_SHEETS:  # the first is of the workbook as a whole
        told = f"has {len(sheets) - 1:,} sheets, and at most {MOST_SHEETS} are read"
        raise make_refusal(path, source, f"{told}. Save those that you need as a file of their own.")
    area, cells = sum(each.area for each in sheets), sum(each.cells for each in sheets)
    if area > MOST_CELLS and area > MOSTLY * cells:
        far = max(sheets, key=lambda each: each.area)
        where = f"row {far.rows:,} and column {letters_of(far.columns)}"
        told = f"has a sheet that reaches {where}, with something in {far.cells:,} cells only"
        advice = "Delete the stray cells at its end (Ctrl+End goes there), and save it again."
        raise make_refusal(path, source, f"{told}. {advice}")


def _sheets(path: Path, source: str, stream: bytes) -> Iterator[_Extent]:
    """The extents of a stream's sheets. What is drawn in a sheet has a beginning and an end within its own."""
    depth, at = 0, 0
    extent = _Extent()
    while at + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, at)
        body = at + 4
        at = body + size
        if kind == _PASSWORD:
            raise make_refusal(path, source, "has a password. Save it without one.")
        if kind == _BEGIN:
            depth += 1
        elif kind == _STOP:
            depth -= 1
            if depth <= 0:
                yield extent
                depth, extent = 0, _Extent()
        elif depth == 1 and kind in _CELLS and size >= 4:
            row, column = struct.unpack_from("<HH", stream, body)
            extent.add(row, column, column)
        elif depth == 1 and kind == _NUMBERS and size >= 6:
            row, column = struct.unpack_from("<HH", stream, body)
            extent.add(row, column, max(column, struct.unpack_from("<H", stream, at - 2)[0]))


def _streams(data: bytes) -> dict[str, bytes]:
    """Return the streams of a file that hold the workbook, by name. Raises DamagedWorkbook."""
    try:
        shift, first_of_directory = struct.unpack_from("<H", data, 30)[0], struct.unpack_from("<I", data, 48)[0]
        (small, first_small), (first_table,) = struct.unpack_from("<2I", data, 56), struct.unpack_from("<I", data, 68)
        if shift not in (9, 12):
            raise DamagedWorkbook("its sectors have no size")
        sector = 1 << shift
        table = _table(data, sector, first_table)
        directory = b"".join(_chain(data, sector, sector, table, first_of_directory))
        root = _entry(directory, 0)
        found: dict[str, bytes] = {}
        for at in range(0, len(directory) - _ENTRY + 1, _ENTRY):
            name, start, size = _entry(directory, at)
            if name in found:  # the first is read
                continue
            if name == _ENCRYPTED:
                found[name] = b""
            elif name in _NAMES and size >= small:
                found[name] = b"".join(_chain(data, sector, sector, table, start))[:size]
            elif name in _NAMES:
                inner = b"".join(_chain(data, sector, sector, table, root[1]))
                numbers = b"".join(_chain(data, sector, sector, table, first_small))
                smalls = _numbers(numbers[: len(inner) // 64 * 4])
                found[name] = b"".join(_chain(inner, 0, 64, smalls, start))[:size]
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise DamagedWorkbook("it breaks off") from error
    return found


def _entry(directory: bytes, at: int) -> tuple[str, int, int]:
    """The name of a stream, its first sector and its bytes."""
    length = struct.unpack_from("<H", directory, at + 64)[0]
    name = directory[at : at + max(min(length, 64) - 2, 0)].decode("utf-16-le")
    start, size = struct.unpack_from("<2I", directory, at + 116)
    return name, start, size


def _table(data: bytes, sector: int, first: int) -> list[int]:
    """Which sector follows each: at most as many as the file has. The sectors of this table are listed in the header,
    and in sectors from `first` on."""
    most = len(data) // sector
    places = [each for each in struct.unpack_from("<109I", data, 76) if each < _END]
    seen: set[int] = set()
    while first < _END:  # to the end, as who reads the workbook goes
        if first in seen:
            raise DamagedWorkbook("its sectors go in a circle")
        seen.add(first)
        more = _numbers(_sector(data, sector, sector, first))
        if len(places) < most:
            places += [each for each in more[:-1] if each < _END]
        first = more[-1]
    return [*islice((each for place in places for each in _numbers(_sector(data, sector, sector, place))), most)]


def _chain(data: bytes, begin: int, sector: int, table: list[int], at: int) -> Iterator[bytes]:
    """The sectors of a stream, one after the other."""
    for _ in range(len(table) + 1):
        if at >= _END:
            return
        yield _sector(data, begin, sector, at)
        at = table[at]
    raise DamagedWorkbook("its sectors go in a circle")


def _sector(data: bytes, begin: int, sector: int, at: int) -> bytes:
    return data[begin + at * sector : begin + (at + 1) * sector]


def _numbers(data: bytes) -> list[int]:
    return [*struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])]


@dataclass
class Sheet:
    """A sheet's rows. `merged` are the rows with cells that span several columns; `formats` count the columns before
    the `first` one too."""

    name: str
    rows: list[list[str]]
    merged: set[int] = field(default_factory=set)
    notes: list[Note] = field(default_factory=list)
    first: int = 0
    formats: CellFormats = field(default_factory=CellFormats)


def sheets_of(path: Path, source: str) -> tuple[list[Sheet], list[Note]]:
    """Return the visible sheets with cells, and notes on the others. The first bytes of the file show its format.
    Raises SourceUnreadable."""
    try:
        with path.open("rb") as file:
            is_old = file.read(len(OLE)) == OLE
            (expect_bounded_old if is_old else expect_bounded)(path, source)
            file.seek(0)
            with _PanicIsDamage(), CalamineWorkbook.from_filelike(file) as book:
                sheets, notes = _read(book, 0 if is_old else count_uncalculated(path))
    except PasswordError as error:
        reason = f"{path.name} has a password. Save it without one."
        raise SourceUnreadable(source=source, reason=reason) from error
    except (CalamineError, DamagedWorkbook, *BAD_PART) as error:
        reason = f"{path.name} is no workbook, or is damaged. Open it in Excel and save it as .xlsx again."
        raise SourceUnreadable(source=source, reason=reason) from error
    formats = {} if is_old else read_cell_formats(path, {sheet.name for sheet in sheets})
    return [replace(sheet, formats=formats.get(sheet.name, sheet.formats)) for sheet in sheets], notes


class _PanicIsDamage:
    """Turns a panic of the library into DamagedWorkbook. Its class cannot be imported, and is no Exception."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind is not None and kind.__name__ == "PanicException":
            raise DamagedWorkbook(str(error)) from error


def is_text(path: Path, source: str) -> bool:
    """Whether a file that is called a workbook is a table of text, as many programs write it. Raises SourceUnreadable:
    it is a web page."""
    with path.open("rb") as file:
        head = file.read(1_000)
    if head.startswith((OLE, _ZIP)):
        return False
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        reason = f"{path.name} is a web page that is called a workbook. Open it in Excel and save it as .xlsx."
        raise SourceUnreadable(source=source, reason=reason)
    return True


def _read(book: CalamineWorkbook, uncalculated: int) -> tuple[list[Sheet], list[Note]]:
    sheets: list[Sheet] = []
    left_out: list[Note] = []
    for about in book.sheets_metadata:
        if about.typ != SheetTypeEnum.WorkSheet:
            left_out.append(_left_out(about.name, "it has no cells", "sheet_no_cells"))
        elif about.visible != SheetVisibleEnum.Visible:
            left_out.append(_left_out(about.name, "it is hidden", "sheet_hidden"))
        else:
            sheet = _sheet(about.name, book.get_sheet_by_name(about.name))
            if sheet.rows:
                sheets.append(sheet)
            else:
                left_out.append(_left_out(about.name, "it is empty", "sheet_empty"))
    if uncalculated:
        cells = "1 formula has" if uncalculated == 1 else f"{uncalculated:,} formulas have"
        told = f"{cells} no stored value: such cells are empty here. Open the file in Excel and save it."
        left_out.append(Note(told, "no_stored_values", n=uncalculated))
    return sheets, left_out


def _left_out(sheet: str, why: str, code: str) -> Note:
    return Note(f'The sheet "{sheet}" is left out: {why}.', code, sheet=sheet)


def _sheet(name: str, sheet: CalamineSheet) -> Sheet:
    # From the first row of the sheet on, as merged ranges count them.
    rows = [[_text(value) for value in row] for row in sheet.to_python(skip_empty_area=False)]
    filled = _fill_down(rows, sheet)
    used = [at for row in rows for at, cell in enumerate(row) if cell]
    first, last = (min(used), max(used)) if used else (0, -1)
    rows = [row[first : last + 1] for row in rows] if used else []
    merged = {top for (top, left), (_, right) in sheet.merged_cell_ranges or () if right > left > first}
    told = Note("Cells that are merged over several rows have their value in each of them.", "merged_cells")
    return Sheet(name, rows, merged, [told] if filled else [], first)


def _fill_down(rows: list[list[str]], sheet: CalamineSheet) -> bool:
    """Fills each cell once, though a damaged file may have any number of ranges over it."""
    filled = False
    reached: dict[int, int] = {}
    """The last row of a column that a range has had."""
    for (top, left), (bottom, _) in sorted(sheet.merged_cell_ranges or ()):
        if bottom > top and top < len(rows) and left < len(rows[top]) and rows[top][left]:
            for at in range(max(top, reached.get(left, 0)) + 1, min(bottom + 1, len(rows))):
                rows[at][left] = rows[top][left]
                filled = True
            reached[left] = max(bottom, reached.get(left, 0))
    return filled


def _text(value: Any) -> str:
    """A cell as in a text file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(value)
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        minutes, seconds = divmod(value.total_seconds(), 60)
        return f"{int(minutes // 60):02}:{int(minutes % 60):02}:{seconds:02.0f}"
    return str(value)


def count_uncalculated(path: Path) -> int:
    """The number of formulas without a stored value, as programs other than Excel write them."""
    count, left = 0, _SEARCHED
    with zipfile.ZipFile(path) as archive:
        for part in archive.infolist():
            if part.filename.startswith("xl/worksheets/") and part.filename.endswith(".xml") and part.file_size <= left:
                left -= part.file_size
                count += sum(1 for _ in _UNKNOWN.finditer(archive.read(part)))
    return count
