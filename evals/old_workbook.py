"""A workbook as Excel 97 to 2003 wrote it (`.xls`): one sheet of texts, numbers and dates.

No library that is still kept writes the format. The records are those of [MS-XLS], in one stream of a compound file
([MS-CFB]).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import date
from pathlib import Path

Cell = str | int | float | date | None

_SECTOR = 512
_SMALLEST = 4096
"""Bytes of the smallest stream that lies in sectors of its own."""
_FREE, _END, _TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_GENERAL, _DATE = 0, 1
"""The places of the two formats of cells."""
_DAY_ZERO = date(1899, 12, 30)


def write_old_workbook(path: Path, sheet: str, rows: Sequence[Sequence[Cell]]) -> None:
    """Write `rows` as the only sheet of a new file."""
    path.write_bytes(_compound(_stream(sheet, rows)))


def _stream(sheet: str, rows: Sequence[Sequence[Cell]]) -> bytes:
    formats = b"".join(_record(0x00E0, struct.pack("<HH16x", 0, number)) for number in (0, 14))
    start = _record(0x0809, struct.pack("<HHHH8x", 0x0600, 0x0005, 0, 0))
    codepage = _record(0x0042, struct.pack("<H", 1200))
    name = struct.pack("<BB", len(sheet), 1) + sheet.encode("utf-16-le")
    end = _record(0x000A, b"")
    place = len(start + codepage + formats + end) + 4 + 6 + len(name)
    globals_ = start + codepage + formats + _record(0x0085, struct.pack("<IH", place, 0) + name) + end
    cells = b"".join(_cell(at, column, cell) for at, row in enumerate(rows) for column, cell in enumerate(row))
    size = struct.pack("<IIHHH", 0, len(rows), 0, max(map(len, rows)), 0)
    first = _record(0x0809, struct.pack("<HHHH8x", 0x0600, 0x0010, 0, 0)) + _record(0x0200, size)
    return globals_ + first + cells + end


def _cell(row: int, column: int, cell: Cell) -> bytes:
    if cell is None:
        return b""
    if isinstance(cell, str):
        text = struct.pack("<HHHHB", row, column, _GENERAL, len(cell), 1) + cell.encode("utf-16-le")
        return _record(0x0204, text)
    number = float((cell - _DAY_ZERO).days if isinstance(cell, date) else cell)
    return _record(0x0203, struct.pack("<HHHd", row, column, _DATE if isinstance(cell, date) else _GENERAL, number))


def _record(kind: int, data: bytes) -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


def _compound(stream: bytes) -> bytes:
    """A compound file of one stream: the table of sectors, the directory, and the stream's sectors."""
    stream = stream.ljust(max(_SMALLEST, -(-len(stream) // _SECTOR) * _SECTOR), b"\0")
    count = len(stream) // _SECTOR
    if count + 2 > _SECTOR // 4:
        raise ValueError("the sheet has more bytes than one table of sectors holds")
    chain = [_TABLE, _END, *range(3, count + 2), _END]
    table = struct.pack(f"<{_SECTOR // 4}I", *chain, *[_FREE] * (_SECTOR // 4 - len(chain)))
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<5H", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    head += struct.pack("<10I", 0, 1, 1, 0, _SMALLEST, _END, 0, _END, 0, 0)
    head += struct.pack("<108I", *[_FREE] * 108)
    directory = _entry("Root Entry", 5, _END, 0, 1) + _entry("Workbook", 2, 2, len(stream), _FREE)
    return head + table + directory.ljust(_SECTOR, b"\0") + stream


def _entry(name: str, kind: int, first: int, size: int, child: int) -> bytes:
    text = name.encode("utf-16-le")
    links = struct.pack("<3I", _FREE, _FREE, child)
    return (
        text.ljust(64, b"\0")
        + struct.pack("<HBB", len(text) + 2, kind, 1)
        + links
        + bytes(36)
        + struct.pack("<IQ", first, size)
    )
