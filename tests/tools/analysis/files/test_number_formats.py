"""The number formats of a workbook's cells: how its columns are written in results."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any
from xml.parsers import expat

import pytest
from openpyxl import Workbook

from longthread.errors import SourceUnreadable
from longthread.tools.analysis.column_format import ColumnFormat
from longthread.tools.analysis.files import number_formats
from longthread.tools.analysis.files.number_formats import BUILT_IN, by_name, format_of_code, read_cell_formats
from longthread.tools.analysis.files.workbook import sheets_of
from longthread.tools.analysis.source import Source

Opened = Callable[..., Awaitable[Source]]
SHARE, DAY, PLAIN = ColumnFormat("share"), ColumnFormat("date"), ColumnFormat("plain", places=0)


def money(unit: str, places: int | None = 2) -> ColumnFormat:
    return ColumnFormat("currency", unit, places)


def unit(unit: str, places: int | None = 0) -> ColumnFormat:
    return ColumnFormat("unit", unit, places)


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("€ #,##0.00", money("€")),
        ("#,##0.00\\ [$€-407]", money("€")),
        ("[$€-x-euro2] #,##0.00", money("€")),
        ('_-* #,##0.00\\ "€"_-;\\-* #,##0.00\\ "€"_-;_-* "-"??\\ "€"_-;_-@_-', money("€")),
        ('_("$"* #,##0_);_("$"* \\(#,##0\\);_("$"* "-"_);_(@_)', money("$", 0)),
        ("[$$-409]#,##0.00;[Red]-[$$-409]#,##0.00", money("$")),
        ("[$R$-416] #,##0.00", money("R$")),
        ("[$₽-419]#,##0", money("₽", 0)),
        ("[$USD] #,##0.00", money("USD")),
        ("¥#,##0.00", money("¥")),
        ("[$¥-804]#,##0.00", money("¥")),
        ("￥#,##0", money("￥", 0)),
        ('#,##0.00"元"', money("元")),
        ('0.00" 元"', money("元")),
        ('$#,##0.00" / kg"', money("$")),
        ("[$£-en-GB]#,##0", money("£", 0)),
        ("#,##0.00 [$€-de-DE]", money("€")),
        ("[$-en-US]#,##0.00", None),
        ("[$-zh-CN]¥#,##0", money("¥", 0)),
        ("[$€-407]0 [$-409]", money("€", 0)),
        ("0.0[$%-409]", ColumnFormat("percent", places=1)),
        ("0%", ColumnFormat("share", places=0)),
        ("0.0%", ColumnFormat("share", places=1)),
        ("0.0#%", SHARE),
        ("[Red]0.00%;[Blue]-0.00%", ColumnFormat("share", places=2)),
        ('0.0"%"', ColumnFormat("percent", places=1)),
        ("0.0\\%", ColumnFormat("percent", places=1)),
        ('#,##0 "kg"', unit("kg")),
        ("#,##0.0\\ \\k\\g", unit("kg", 1)),
        ('0.0"°C"', unit("°C", 1)),
        ('0"件"', unit("件")),
        ('#,##0.00"万元"', unit("万元", 2)),
        ('General "pcs"', unit("pcs", None)),
        ('G/通用格式"人"', unit("人", None)),
        ("0", PLAIN),
        ("00000", PLAIN),
        ('0"年"', PLAIN),
        ("000-00-0000", PLAIN),
        ("yyyy-mm-dd", DAY),
        ("dd/mm/yyyy", DAY),
        ('[$-804]yyyy"年"m"月"d"日"', DAY),
        ("mmm yyyy", DAY),
        ("yyyy-mm-dd hh:mm", None),
        ("h:mm AM/PM", None),
        ("[h]:mm:ss", None),
        ("mm:ss.0", None),
        ("General", None),
        ("#,##0.00", None),
        ("0.00", None),
        ("##\\,##\\,##0", None),
        ("0.00E+00", None),
        ("# ?/?", None),
        ("@", None),
        (";;;", None),
        ("", None),
        ('#,##0,"k"', None),
        ('0\\.0,"万"', None),
        ('$0.0,,"M"', money("$", None)),
        ('$#,##0"M"', None),
        ("$#,##0\\m", None),
        ("$0k", None),
        ('"k" $0', None),
        ('[$€-407]#,##0.0" Mio"', None),
        ('#,##0 "Tsd." [$€-407]', None),
        ("[$$-409]0[$M-409]", None),
        ('¥#,##0"万"', None),
        ('[$¥-804]#,##0.00"万元"', None),
        ('$#,##0",000"', None),
        ('#,##0.0" Mio €"', unit("Mio €", 1)),
        ('¥#,##0.00"元"', money("¥")),
        ('[$$-409]#,##0.00" USD"', money("$")),
        ("[<1]0.0%;0", None),
        ("[>=100]$0;$0.00", None),
        ("[<1]yyyy;yyyy-mm-dd", None),
        ('[>=1000]0"km";0"m"', None),
        ('0"' + "x" * 30 + '"', None),
        ('0"', PLAIN),
        ("[", None),
    ],
)
def test_a_code_tells_a_format(code: str, wanted: ColumnFormat | None) -> None:
    assert format_of_code(code) == wanted


def test_formats_without_a_code_tell_no_currency() -> None:
    assert {number: BUILT_IN[number] for number in (9, 10, 14, 44)} == {
        9: ColumnFormat("share", places=0),
        10: ColumnFormat("share", places=2),
        14: DAY,
        44: money(""),
    }
    assert by_name("Umsatz EUR", BUILT_IN[44]) == money("€")
    assert by_name("金额（元）", PLAIN) == money("¥", 0)
    assert (by_name("Jahr", PLAIN), by_name("price_usd", money("€"))) == (PLAIN, money("€"))


def write(path: Path, sheets: Mapping[str, tuple[list[list[Any]], int, list[str | None]]], merged: str = "") -> Path:
    """A workbook: of each sheet its rows, the row from which cells have formats, and those by column."""
    book = Workbook()
    book.remove(book.active)
    for name, (rows, first, formats) in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        for row in sheet.iter_rows(min_row=first):
            for cell, code in zip(row, formats, strict=False):
                if code is not None:
                    cell.number_format = code
        if merged:
            sheet.merge_cells(merged)
    book.save(path)
    return path


SALES = [
    ["city", "revenue", "growth", "weight", "at", "founded", "total"],
    ["Bonn", 1234.5, 0.19, 1200, datetime(2024, 1, 5, 4, 5), 2019, 7],
    ["Köln", 3, 0.055, 20, datetime(2024, 1, 6, 4, 5), 2020, 8],
    ["Total", 1237.5, None, 1220, None, None, None],
]
CODES = [None, "€ #,##0.00", "0.0%", '#,##0 "kg"', "yyyy-mm-dd", "0", "#,##0"]


async def test_columns_have_the_formats_of_their_cells(opened: Opened, ask: Any, tmp_path: Path) -> None:
    staff = [["姓名", "工资", "出勤", "数量"], ["王", 8000.5, 0.9, 3], ["李", 9000, 1, 4]]
    own: list[str | None] = [None, "¥#,##0.00", "0%", '#,##0"元"']
    path = write(tmp_path / "book.xlsx", {"Sales": (SALES, 2, CODES), "员工": (staff, 2, own)})
    source = await opened(path)
    data = (await ask(source, "run_sql", sql="SELECT * FROM Sales"))["data"]
    assert data["rows"][0][:4] == ["Bonn", 1234.5, 0.19, 1200]
    assert data["formats"] == {
        "revenue": {"kind": "currency", "unit": "€", "places": 2},
        "growth": {"kind": "share", "places": 1},
        "weight": {"kind": "unit", "unit": "kg", "places": 0},
        "at": {"kind": "date"},
        "founded": {"kind": "plain", "places": 0},
    }
    data = await ask(source, "run_sql", sql="SELECT AVG(工资) AS 平均, MAX(出勤) AS 出勤, SUM(数量) AS n FROM 员工")
    assert data["data"]["formats"] == {
        "平均": {"kind": "currency", "unit": "¥"},
        "出勤": {"kind": "share", "places": 0},
        "n": {"kind": "currency", "unit": "元", "places": 0},
    }
    notes = (await ask(source, "describe_table", table="Sales"))["data"]["notes"]
    assert notes[-3:] == [
        'Column "revenue": in €, which is not part of the numbers.',
        'Column "growth": shares, which the workbook shows in percent: 0.5 is 50%.',
        'Column "weight": in kg, which is not part of the numbers.',
    ]


async def test_titles_merged_headers_and_empty_columns_are_no_numbers(opened: Opened, ask: Any, tmp_path: Path) -> None:
    rows = [
        [None, "Figures of 2024", None, None],
        [],
        [None, "country", "2023", None],
        [None, None, "a", "b"],
        [None, "X", 0.5, 12.5],
        [],
        [None, "Source: the ledger"],
    ]
    path = write(tmp_path / "m.xlsx", {"Data": (rows, 5, [None, None, "0%", "$#,##0.00"])}, merged="C3:D3")
    data = (await ask(await opened(path), "run_sql", sql="SELECT * FROM Data"))["data"]
    assert data["columns"] == ["country", "2023 a", "2023 b"]
    assert data["formats"] == {
        "2023 a": {"kind": "share", "places": 0},
        "2023 b": {"kind": "currency", "unit": "$", "places": 2},
    }


async def test_a_format_holds_if_all_numbers_of_a_column_have_it(opened: Opened, ask: Any, tmp_path: Path) -> None:
    book = Workbook()
    book.active.title = "mixed"
    names = ["kpi", "money", "digits", "units", "both", "places", "text", "blank", "day", "at"]
    book.active.append(names)
    day, clock = "yyyy-mm-dd", "yyyy-mm-dd hh:mm"
    codes = [
        ("0%", "€0", "0", "$0.00", "0%", "$0.00", "0%", "General", day, day),
        ("0%", "€0", "0", "€0.00", "€0", "$0.00", "0%", "General", "dd.mm.yyyy", day),
        ("0.0%", "€0", "0", "$0.00", "0%", "$0", "0%", "General", day, day),
        ("General", "#,##0", "General", "$0.00", "0%", "$0.00", "0%", "General", day, clock),
    ]
    for at, each in enumerate(codes, 2):
        moment = datetime(2024, 1, at, 8, 30)
        book.active.append([at, at, at / 4, at, at, at, "x" if at > 2 else 1, None, moment, moment])
        for column, code in enumerate(each, 1):
            book.active.cell(at, column).number_format = code
    for at in range(2, 200):  # cells that have a format alone
        book.active.cell(at, names.index("blank") + 1).number_format = "0%"
    book.save(tmp_path / "mixed.xlsx")
    source = await opened(tmp_path / "mixed.xlsx")
    data = (await ask(source, "run_sql", sql="SELECT * FROM mixed"))["data"]
    assert data["formats"] == {"places": {"kind": "currency", "unit": "$", "places": 2}, "day": {"kind": "date"}}
    notes = (await ask(source, "describe_table", table="mixed"))["data"]["notes"]
    assert [note for note in notes if "cells" in note] == [
        'Column "kpi": only some of its cells are in %, so their formats are not used.',
        'Column "money": only some of its cells are in €, so their formats are not used.',
        'Column "units": its cells are in $, €, which do not add up.',
        'Column "both": its cells are in %, €, which do not add up.',
    ]


async def test_all_rows_of_a_column_tell_its_format(
    opened: Opened, ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = Workbook()
    book.active.title = "ledger"
    book.active.append(["country", "amount", "tax"])
    for at in range(2, 1_302):
        book.active.append(["DE" if at < 1_102 else "US", at, at])
        book.active.cell(at, 2).number_format = "€#,##0" if at < 1_102 else "$#,##0"
        book.active.cell(at, 3).number_format = "€#,##0"
    book.save(tmp_path / "ledger.xlsx")
    sql = "SELECT SUM(amount) AS amount, SUM(tax) AS tax FROM ledger"
    source = await opened(tmp_path / "ledger.xlsx")
    data = (await ask(source, "run_sql", sql=sql))["data"]
    assert data["formats"] == {"tax": {"kind": "currency", "unit": "€", "places": 0}}
    notes = (await ask(source, "describe_table", table="ledger"))["data"]["notes"]
    assert 'Column "amount": its cells are in $, €, which do not add up.' in notes
    monkeypatch.setattr(number_formats, "_CELLS", 3_600)  # less than the sheet has
    found = read_cell_formats(tmp_path / "ledger.xlsx", ["ledger"])["ledger"]
    assert found.find_common_format(2, range(1, 1_301)) is None
    assert found.find_common_format(2, range(1, 1_000)) == money("€", 0)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"<styleSheet", b'<!DOCTYPE x [<!ENTITY a "b">]><styleSheet'),
        (b"<cellXfs", b"<cellXfs><"),
        (b'numFmtId="', b'numFmtId="x'),
        (b"cellXfs", b"noXfs"),
    ],
)
async def test_a_workbook_whose_styles_cannot_be_read_is_read_without(
    old: bytes, new: bytes, opened: Opened, ask: Any, tmp_path: Path
) -> None:
    path = write(tmp_path / "b.xlsx", {"Sales": ([row[:4] for row in SALES], 2, CODES[:4])})
    assert read_cell_formats(path, ["Sales"])["Sales"].columns
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["xl/styles.xml"] = parts["xl/styles.xml"].replace(old, new)
    with zipfile.ZipFile(tmp_path / "broken.xlsx", "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    assert read_cell_formats(tmp_path / "broken.xlsx", ["Sales"]) == {}


async def test_a_workbook_without_styles_is_read(opened: Opened, ask: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "b.xlsx", {"Sales": ([row[:4] for row in SALES], 2, CODES[:4])})
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist() if name != "xl/styles.xml"}
    with zipfile.ZipFile(tmp_path / "bare.xlsx", "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    data = (await ask(await opened(tmp_path / "bare.xlsx"), "run_sql", sql="SELECT * FROM Sales"))["data"]
    assert data["rows"][0] == ["Bonn", 1234.5, 0.19, 1200]
    assert "formats" not in data


def test_only_so_many_sheets_cells_and_bytes_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[at, at] for at in range(50)]
    path = write(tmp_path / "b.xlsx", {"a": (rows, 1, ["0%", "$0"]), "b": (rows, 1, ["0%", "$0"])})

    def looked() -> dict[str, int]:
        return {name: len(each.columns.get(0, ())) for name, each in read_cell_formats(path, ["a", "b"]).items()}

    assert looked() == {"a": 50, "b": 50}
    monkeypatch.setattr(number_formats, "_CELLS", 120)
    assert looked() == {"a": 50, "b": 10}
    monkeypatch.setattr(number_formats, "_SHEETS", 1)
    assert looked() == {"a": 50}
    monkeypatch.undo()
    with zipfile.ZipFile(path) as archive:
        texts = {name: archive.read(name) for name in archive.namelist()}
    read = ["xl/styles.xml", "xl/workbook.xml", "xl/_rels/workbook.xml.rels", "xl/worksheets/sheet1.xml"]
    monkeypatch.setattr(number_formats, "_ELEMENTS", sum(len(re.findall(rb"<\w", texts[name])) for name in read))
    assert looked() == {"a": 50}
    monkeypatch.undo()
    monkeypatch.setattr(number_formats, "_BYTES", sum(len(texts[name]) for name in read))
    assert looked() == {"a": 50}
    monkeypatch.setattr(number_formats, "_BYTES", 10)
    assert looked() == {}
    monkeypatch.undo()
    monkeypatch.setattr(number_formats, "_CODES", 0)
    assert {name: each.find_common_format(1, range(50)) for name, each in read_cell_formats(path, ["a"]).items()} == {
        "a": None
    }


MAIN, LINKED = "http://schemas.openxmlformats.org/spreadsheetml/2006/main", "urn:r"
ROWS = '<row r="1"><c r="A1"><v>1</v></c></row><row r="2"><c r="A2" s="1"><v>2</v></c></row>'


def write_parts(path: Path, sheet: str, names: Sequence[str] = ("A",), styles: str = "", method: int = 8) -> Path:
    """A workbook whose sheets are all the same part, and whose styles are compressed as `method` says."""
    entries = "".join(f'<sheet name="{name}" sheetId="1" r:id="r1"/>' for name in names)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        styles = styles or '<cellXfs><xf/><xf numFmtId="9"/></cellXfs>'
        archive.writestr("xl/styles.xml", f'<styleSheet xmlns="{MAIN}">{styles}</styleSheet>', method)
        book = f'<workbook xmlns="{MAIN}" xmlns:r="{LINKED}"><sheets>{entries}</sheets></workbook>'
        archive.writestr("xl/workbook.xml", book)
        link = '<Relationship Id="r1" Target="worksheets/s.xml"/>'
        archive.writestr("xl/_rels/workbook.xml.rels", f"<Relationships>{link}</Relationships>")
        archive.writestr("xl/worksheets/s.xml", sheet)
    return path


def test_a_part_is_read_once_for_all_sheets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sheet = f'<worksheet xmlns="{MAIN}"><sheetData>{ROWS}</sheetData></worksheet>'
    path = write_parts(tmp_path / "s.xlsx", sheet, ["A", "B", "A", *"A" * 100])
    opened: list[str] = []
    read = zipfile.ZipFile.open
    monkeypatch.setattr(
        zipfile.ZipFile, "open", lambda self, name, *rest: opened.append(name) or read(self, name, *rest)
    )
    found = read_cell_formats(path, ["A", "B"])
    share = ColumnFormat("share", places=0)
    assert {name: each.find_common_format(0, range(1, 2)) for name, each in found.items()} == {"A": share, "B": share}
    assert opened.count("xl/worksheets/s.xml") == 1


@pytest.mark.parametrize(
    "sheet",
    [
        f'<worksheet xmlns="{MAIN}" x="{"a" * 4_000_000}">{ROWS}</worksheet>',
        f'<worksheet xmlns="{MAIN}">{ROWS}<t>{"a" * 4_000_000}</t></worksheet>',
        f'<worksheet xmlns="{MAIN}">{ROWS}{"<a>" * 100_000}{"</a>" * 100_000}</worksheet>',
    ],
    ids=["attribute", "text", "depth"],
)
def test_a_part_with_something_very_long_or_deep_is_given_up(
    sheet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_parts(tmp_path / "s.xlsx", sheet)
    read: list[int] = []
    make = expat.ParserCreate

    class Counting:
        """A parser that counts the bytes of each block."""

        def __init__(self) -> None:
            object.__setattr__(self, "_inner", make())

        def __setattr__(self, name: str, value: Any) -> None:
            setattr(self._inner, name, value)

        def Parse(self, block: bytes) -> None:  # noqa: N802
            read.append(len(block))
            self._inner.Parse(block)

    monkeypatch.setattr(number_formats.expat, "ParserCreate", Counting)
    assert read_cell_formats(path, ["A"]) == {}
    assert sum(read) < 1_200_000


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("part", ["xl/styles.xml", "xl/worksheets/sheet1.xml"])
def test_a_damaged_part_has_no_formats(part: str, method: int, tmp_path: Path) -> None:
    path = write(tmp_path / "b.xlsx", {"Sales": ([row[:4] for row in SALES], 2, CODES[:4])})
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "made.xlsx", "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content, method if name == part else zipfile.ZIP_DEFLATED)
    data = bytearray((tmp_path / "made.xlsx").read_bytes())
    with zipfile.ZipFile(tmp_path / "made.xlsx") as archive:
        begin = archive.getinfo(part).header_offset + 30 + len(part)
    for at in range(begin + 14, begin + 60):
        data[at] ^= 0x5A
    (tmp_path / "bad.xlsx").write_bytes(data)
    assert read_cell_formats(tmp_path / "bad.xlsx", ["Sales"]) == {}
    with pytest.raises(SourceUnreadable, match="damaged"):
        sheets_of(tmp_path / "bad.xlsx", "bad")


def test_cells_without_places_and_sheets_under_other_names_are_read(tmp_path: Path) -> None:
    """As other programs than Excel write them: a prefix, places left out, paths from the root."""
    main, linked = "http://schemas.openxmlformats.org/spreadsheetml/2006/main", "urn:r"
    cells = '<x:c><x:v>1</x:v></x:c><x:c s="1"><x:v>2</x:v></x:c><x:c s="1" t="s"><x:v>0</x:v></x:c>'
    styles = '<x:numFmts><x:numFmt numFmtId="9" formatCode="0.00%"/></x:numFmts>'
    styles += '<x:cellStyleXfs><x:xf numFmtId="14"/></x:cellStyleXfs><x:cellXfs><x:xf/><x:xf numFmtId="9"/></x:cellXfs>'
    styles += '<x:dxfs><x:dxf><x:numFmt numFmtId="9" formatCode="0"/></x:dxf></x:dxfs>'
    with zipfile.ZipFile(tmp_path / "x.xlsx", "w") as archive:
        archive.writestr("xl/styles.xml", f'<x:styleSheet xmlns:x="{main}">{styles}</x:styleSheet>')
        sheet = '<x:sheet name="A &amp; B" sheetId="7" r:id="r1"/>'
        archive.writestr("xl/workbook.xml", f'<x:workbook xmlns:x="{main}" xmlns:r="{linked}">{sheet}</x:workbook>')
        link = '<Relationship Id="r1" Target="/xl/worksheets/one.xml"/>'
        archive.writestr("xl/_rels/workbook.xml.rels", f"<Relationships>{link}</Relationships>")
        rows = f"<x:row>{cells}</x:row><x:row>{cells}</x:row>"
        archive.writestr("xl/worksheets/one.xml", f'<x:worksheet xmlns:x="{main}">{rows}</x:worksheet>')
    found = read_cell_formats(tmp_path / "x.xlsx", ["A & B"])["A & B"]
    share = ColumnFormat("share", places=2)
    assert found.columns == {0: [(0, None), (1, None)], 1: [(0, share), (1, share)]}
    assert found.find_common_format(1, range(2)) == share


def test_dates_are_of_days(tmp_path: Path) -> None:
    rows = [["day"], [date(2024, 1, 5)]]
    path = write(tmp_path / "d.xlsx", {"d": (rows, 2, ["dd.mm.yyyy"])})
    assert read_cell_formats(path, ["d"])["d"].find_common_format(0, range(1, 2)) == DAY
