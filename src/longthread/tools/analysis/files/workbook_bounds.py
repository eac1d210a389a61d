"""Bounds on a workbook before it is read: a sheet is read as a whole rectangle, from A1 to its last cell."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from longthread.errors import SourceUnreadable

MOST_SHEETS = 500
MOST_UNPACKED = 1_000_000_000
"""Bytes of a workbook when it is unpacked."""
MOST_CELLS = 10_000_000
"""Cells of a sheet, empty ones included, that may be mostly empty."""
MOSTLY = 20
"""A sheet is mostly empty if one cell of so many has something."""
_CELL = re.compile(rb"""<c\s(?:[^<>]*\s)?r=["']([A-Z]{1,3})([0-9]{1,7})["'][^<>]*(?<!/)>(?!\s*</c)""")
"""A cell with something in it. Those that only have a format are not read, and may reach to the sheet's end."""
_BLOCK = 1_000_000
_OVERLAP = 256
"""Bytes that are looked at again: a cell may stand across two blocks."""


def expect_bounded(path: Path, source: str) -> None:
    """Raise SourceUnreadable if a workbook has too many sheets, is too large when it is unpacked, or has a stray cell
    far from the others. Raises `zipfile.BadZipFile`."""
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
        sheets = [each for each in parts if re.fullmatch(r"xl/worksheets/[^/]+\.xml", each.filename)]
        if (size := sum(each.file_size for each in parts)) > MOST_UNPACKED:
            told = f"is {size / 1e6:,.0f} MB when it is unpacked, and {MOST_UNPACKED / 1e6:,.0f} MB are read"
            raise refused(path, source, f"{told}. Save a part of it as a file of its own, or as CSV.")
        if len(sheets) > MOST_SHEETS:
            told = f"has {len(sheets):,} sheets, and at most {MOST_SHEETS} are read"
            raise refused(path, source, f"{told}. Save those that you need as a file of their own.")
        for number, part in enumerate(sheets, 1):
            last, cells = _extent(archive, part)
            area = last[0] * last[1]
            if area > MOST_CELLS and area > MOSTLY * cells:
                where = f"row {last[0]:,} and column {letters_of(last[1])}"
                told = f"has a sheet (number {number}) that reaches {where}, with something in {cells:,} cells only"
                advice = "Delete the stray cells at its end (Ctrl+End goes there), and save it again."
                raise refused(path, source, f"{told}. {advice}")


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


def refused(path: Path, source: str, told: str) -> SourceUnreadable:
    """Return the error about a workbook."""
    return SourceUnreadable(source=source, reason=f"{path.name} {told}")
