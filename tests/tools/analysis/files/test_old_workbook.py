"""Workbooks of Excel 97 to 2003. `old.xls` has a title, three rows, dates, a hidden sheet and an empty one."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from longthread.errors import SourceUnreadable
from longthread.tools.analysis.files import workbook
from longthread.tools.analysis.files.workbook import sheets_of
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source

Opened = Callable[..., Awaitable[Source]]

OLD = (Path(__file__).parent / "old.xls").read_bytes()
_LAST = OLD.index(struct.pack("<4H", 0x00FD, 10, 5, 3))
"""Where the record of the last cell begins."""
_CODEPAGE = OLD.index(struct.pack("<2H", 0x0042, 2))


def _patched(at: int, form: str, *values: int) -> bytes:
    data = bytearray(OLD)
    struct.pack_into(form, data, at, *values)
    return bytes(data)


async def test_an_old_workbook_is_read_as_a_new_one(opened: Opened, ask: Any, tmp_path: Path) -> None:
    (tmp_path / "old.xls").write_bytes(OLD)
    source = await opened(tmp_path / "old.xls")
    listing = (await ask(source, "list_tables"))["data"]
    assert listing["tables"] == ["销售_2003"]
    assert listing["notes"][:2] == [
        'old.xls: The sheet "Hidden" is left out: it is hidden.',
        'old.xls: The sheet "Empty" is left out: it is empty.',
    ]
    data = (await ask(source, "run_sql", sql='SELECT * FROM "销售_2003" ORDER BY day'))["data"]
    assert (data["columns"], data["rows"]) == (
        ["城市", "day", "amount", "code"],
        [
            ["北京", "2003-03-05", 1200.5, "00123"],
            ["上海", "2003-03-06", 7, "00456"],
            ["深圳", "2003-04-01", -3, "00789"],
        ],
    )


async def test_what_a_workbook_is_its_content_tells_and_not_its_name(opened: Opened, ask: Any, tmp_path: Path) -> None:
    book = Workbook()
    book.active.append(["a"])
    book.active.append([1])
    book.save(tmp_path / "new.xlsx")
    (tmp_path / "new.xlsx").rename(tmp_path / "new.xls")
    (tmp_path / "old.xlsx").write_bytes(OLD)
    (tmp_path / "text.xls").write_bytes("城市\tn\n北京\t3\n".encode("utf-16"))
    tables = (await ask(await opened(tmp_path), "list_tables"))["data"]["tables"]
    assert tables == ["new", "old", "text"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\xef\xbb\xbf\n<html><table><tr><td>1</table>", "is a web page that is called a workbook"),
        (_patched(_CODEPAGE, "<H", 0x002F), "has a password"),
        (_patched(_LAST + 4, "<2H", 65_535, 255), "reaches row 65,536 and column IV, with something in 17 cells"),
        (OLD[:3_000], "is damaged"),
        (workbook.OLE, "is damaged"),
    ],
)
async def test_what_cannot_be_read_says_why_and_what_to_do(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "a.xls").write_bytes(content)
    with pytest.raises(SourceUnreadable, match=r"a\.xls .*[Ss]ave it") as raised:
        await open_source(str(tmp_path / "a.xls"))
    assert told in str(raised.value)


def test_damage_at_any_place_is_told_as_such(tmp_path: Path) -> None:
    """Also one that leads the sectors into a circle."""
    path = tmp_path / "a.xls"
    table = struct.unpack_from("<I", OLD, 76)[0]
    circle = _patched((table + 1) * 512, "<128I", *range(128))
    cut = [OLD[:size] for size in range(9, len(OLD), 97)]
    spoiled = [_patched(at, "<4I", *[2**31] * 4) for at in range(8, len(OLD) - 16, 61)]
    for content in (circle, *cut, *spoiled):
        path.write_bytes(content)
        try:
            sheets_of(path, "a")
        except SourceUnreadable:
            continue


def test_bounds_hold_before_anything_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.xls").write_bytes(OLD)
    for name, told in (("MOST_BYTES", "MB of an .xls file are read"), ("MOST_SHEETS", "at most 2 are read")):
        with monkeypatch.context() as patch, pytest.raises(SourceUnreadable, match=told):
            patch.setattr(workbook, name, 2)
            sheets_of(tmp_path / "a.xls", "a")


_AFTER = len(OLD) // 512 - 1
"""The number of a sector that is put behind the last."""
_DIRECTORY = (struct.unpack_from("<I", OLD, 48)[0] + 1) * 512


def _sectors_read(path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many sectors are read of a file before it is loaded."""
    read: list[int] = []
    sector_of = workbook._sector

    def count(data: bytes, begin: int, sector: int, at: int) -> bytes:
        read.append(at)
        return sector_of(data, begin, sector, at)

    path.write_bytes(content)
    with monkeypatch.context() as patch:
        patch.setattr(workbook, "_sector", count)
        workbook.expect_bounded_old(path, "a")
    return len(read)


def test_a_list_of_the_tables_sectors_that_goes_in_a_circle_is_refused(tmp_path: Path) -> None:
    """It would name more and more sectors, and each adds its numbers to the table."""
    table = struct.unpack_from("<I", OLD, 76)[0]
    circle = _patched(68, "<2I", _AFTER, 1) + struct.pack("<128I", *[table] * 127, _AFTER)
    path = tmp_path / "a.xls"
    path.write_bytes(circle)
    with pytest.raises(workbook.DamagedWorkbook, match="circle"):
        workbook.expect_bounded_old(path, "a")


def test_a_table_has_no_more_numbers_than_the_file_has_sectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = struct.unpack_from("<I", OLD, 76)[0]
    path = tmp_path / "a.xls"
    repeated = _patched(76, "<109I", *[table] * 109)
    assert _sectors_read(path, repeated, monkeypatch) == _sectors_read(path, OLD, monkeypatch)


def test_of_several_workbooks_in_one_file_the_first_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = OLD[_DIRECTORY + 128 : _DIRECTORY + 256]
    assert entry.startswith("Workbook".encode("utf-16-le"))
    several = OLD[: _DIRECTORY + 256] + entry * 2 + OLD[_DIRECTORY + 512 :]
    path = tmp_path / "a.xls"
    assert _sectors_read(path, several, monkeypatch) == _sectors_read(path, OLD, monkeypatch)
