"""Workbooks of Excel 97 to 2003 (`.xls`): their stream within the file, and bounds on it before it is read.

After [MS-CFB] (the file: sectors, and chains of them) and [MS-XLS] (the stream: records, each with its type and size).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from longthread.tools.analysis.files.workbook_bounds import MOST_CELLS, MOST_SHEETS, MOSTLY, letters_of, refused

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
"""A record of several cells beside each other."""


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
        raise refused(path, source, f"{told}. Save it as .xlsx.")
    streams = _streams(path.read_bytes())
    stream = next((streams[name] for name in _NAMES if name in streams), None)
    if stream is None and _ENCRYPTED in streams:
        raise refused(path, source, "has a password. Save it without one.")
    if stream is None:
        raise DamagedWorkbook("it holds no workbook")
    sheets = [*_sheets(path, source, stream)]
    if len(sheets) - 1 > MOST_SHEETS:  # the first is of the workbook as a whole
        told = f"has {len(sheets) - 1:,} sheets, and at most {MOST_SHEETS} are read"
        raise refused(path, source, f"{told}. Save those that you need as a file of their own.")
    area, cells = sum(each.area for each in sheets), sum(each.cells for each in sheets)
    if area > MOST_CELLS and area > MOSTLY * cells:
        far = max(sheets, key=lambda each: each.area)
        where = f"row {far.rows:,} and column {letters_of(far.columns)}"
        told = f"has a sheet that reaches {where}, with something in {far.cells:,} cells only"
        advice = "Delete the stray cells at its end (Ctrl+End goes there), and save it again."
        raise refused(path, source, f"{told}. {advice}")


def _sheets(path: Path, source: str, stream: bytes) -> Iterator[_Extent]:
    """The extents of a stream's sheets. What is drawn in a sheet has a beginning and an end within its own."""
    depth, at = 0, 0
    extent = _Extent()
    while at + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, at)
        body = at + 4
        at = body + size
        if kind == _PASSWORD:
            raise refused(path, source, "has a password. Save it without one.")
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
    """The streams of a file by name, of those that a workbook is in. Raises DamagedWorkbook."""
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
