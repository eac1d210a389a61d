from __future__ import annotations

import zipfile
from collections.abc import Awaitable, Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from longthread.errors import SourceUnreadable
from longthread.tools.analysis.files import workbook
from longthread.tools.analysis.files.workbook import count_uncalculated, letters_of, sheets_of
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source

Opened = Callable[..., Awaitable[Source]]


def _book(path: Path, *sheets: tuple[str, list[list[Any]], list[str]]) -> Path:
    book = Workbook()
    book.remove(book.active)
    for name, rows, merged in sheets:
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        for cells in merged:
            sheet.merge_cells(cells)
    book.save(path)
    return path


async def test_each_sheet_is_a_table(opened: Opened, ask: Any, tmp_path: Path) -> None:
    sales = [
        ["Report of 2021"],
        [],
        ["id", "when", "at", "share", "code", "paid", "amount"],
        [1, date(2021, 3, 5), datetime(2021, 3, 5, 4, 5), 0.125, "00123", True, "1,200.50"],
        [2, date(2021, 3, 6), datetime(2021, 3, 6), 0.5, "00456", False, 7],
    ]
    years = [[None, None], [None, "国家", 2021, 2022], [None, "中国", 1, 2], [], [None, "来源：统计局"]]
    path = _book(tmp_path / "book.xlsx", ("Sales 2021", sales, ["A1:C1"]), ("年份", years, []), ("Empty", [], []))
    source = await opened(path)
    listing = (await ask(source, "list_tables"))["data"]
    assert listing["tables"] == ["Sales_2021", "年份"]
    assert 'book.xlsx: The sheet "Empty" is left out: it is empty.' in listing["notes"]
    data = (await ask(source, "run_sql", sql="SELECT * FROM Sales_2021"))["data"]
    assert data["columns"] == ["id", "when", "at", "share", "code", "paid", "amount"]
    assert data["rows"][0] == [1, "2021-03-05", "2021-03-05T04:05:00", 0.125, "00123", True, 1200.5]
    data = (await ask(source, "run_sql", sql="SELECT * FROM 年份"))["data"]
    assert (data["columns"], data["rows"]) == (["国家", "2021", "2022"], [["中国", 1, 2]])


async def test_merged_headers_and_cells(opened: Opened, ask: Any, tmp_path: Path) -> None:
    rows = [
        ["country", "2021", None, "2022", None],
        [None, "a", "b", "a", "b"],
        ["X", 1, 2, 3, 4],
        [None, 5, 6, 7, 8],
    ]
    path = _book(tmp_path / "m.xlsx", ("Data", rows, ["A1:A2", "B1:C1", "D1:E1", "A3:A4"]))
    data = (await ask(await opened(path), "run_sql", sql="SELECT * FROM Data"))["data"]
    assert data["columns"] == ["country", "2021 a", "2021 b", "2022 a", "2022 b"]
    assert data["rows"] == [["X", 1, 2, 3, 4], ["X", 5, 6, 7, 8]]


async def test_hidden_sheets_and_formulas_without_values_are_told(opened: Opened, ask: Any, tmp_path: Path) -> None:
    book = Workbook()
    book.active.title = "Shown"
    for row in (["a", "b"], [1, "=A2*2"]):
        book.active.append(row)
    hidden = book.create_sheet("Secret")
    hidden.append(["x"])
    hidden.sheet_state = "hidden"
    book.create_chartsheet("Chart")
    book.save(tmp_path / "f.xlsx")
    listing = (await ask(await opened(tmp_path / "f.xlsx"), "list_tables"))["data"]
    assert listing["tables"] == ["Shown"]
    assert listing["notes"][:3] == [
        'f.xlsx: The sheet "Secret" is left out: it is hidden.',
        'f.xlsx: The sheet "Chart" is left out: it has no cells.',
        "f.xlsx: 1 formula has no stored value: such cells are empty here. Open the file in Excel and save it.",
    ]


async def test_the_stored_value_of_a_formula_is_read(opened: Opened, ask: Any, tmp_path: Path) -> None:
    path = _book(tmp_path / "plain.xlsx", ("Data", [["a", "b"], [1, 2]], []))
    made = tmp_path / "made.xlsx"
    with zipfile.ZipFile(path) as given, zipfile.ZipFile(made, "w") as other:
        for part in given.namelist():
            content = given.read(part)
            if part.endswith("sheet1.xml"):
                content = content.replace(b'<c r="B2" t="n"><v>2</v></c>', b'<c r="B2"><f>A2*2</f><v>2</v></c>')
                assert b"<f>" in content
            other.writestr(part, content)
    source = await opened(made)
    assert (await ask(source, "run_sql", sql="SELECT b FROM Data"))["data"]["rows"] == [[2]]
    assert "notes" not in (await ask(source, "list_tables"))["data"]


async def test_workbooks_in_a_folder(opened: Opened, ask: Any, tmp_path: Path) -> None:
    _book(tmp_path / "one.xlsx", ("Sheet1", [["a"], [1]], []))
    _book(tmp_path / "two.xlsx", ("North", [["a"], [1]], []), ("South", [["a"], [2]], []))
    (tmp_path / "~$two.xlsx").write_bytes(b"a lock of Excel's")
    (tmp_path / "locked.xlsx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
    (tmp_path / "logo.png").write_bytes(b"\x89PNG")
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "more").mkdir()
    listing = (await ask(await opened(tmp_path), "list_tables"))["data"]
    assert listing["tables"] == ["one", "two_North", "two_South"]
    assert [note.split(":")[0] for note in listing["notes"]] == [
        "empty.csv is left out",
        "locked.xlsx is left out",
        "old.xls is left out",
        "logo.png is left out",
        "more is left out",
    ]


@pytest.mark.parametrize("content", [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), b"PK\x03\x04junk", b"hello"])
async def test_a_workbook_that_cannot_be_read_says_why(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.xlsx").write_bytes(content)
    with pytest.raises(SourceUnreadable, match=r"a\.xlsx.* (has a password|is no workbook).* [Ss]ave it"):
        await open_source(str(tmp_path / "a.xlsx"))


def _raw(path: Path, rows: str, merged: str = "") -> Path:
    """A workbook whose only sheet is the XML of `rows`, which no library would write."""
    kind = "application/vnd.openxmlformats"
    office = "http://schemas.openxmlformats.org"
    relation = f"{office}/officeDocument/2006/relationships"
    space = f'xmlns="{office}/spreadsheetml/2006/main"'
    names = (
        f'<Types xmlns="{office}/package/2006/content-types">'
        f'<Default Extension="rels" ContentType="{kind}-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}-officedocument.spreadsheetml.sheet.main+xml"/>'
        "</Types>"
    )
    lead = '<Relationship Id="r" Type="{1}/{2}" Target="{3}"/>'
    leads = f'<Relationships xmlns="{{0}}/package/2006/relationships">{lead}</Relationships>'
    only = '<sheets><sheet name="S" sheetId="1" r:id="r"/></sheets>'
    sheets = f'<workbook {space} xmlns:r="{relation}">{only}</workbook>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("[Content_Types].xml", names)
        made.writestr("_rels/.rels", leads.format(office, relation, "officeDocument", "xl/workbook.xml"))
        made.writestr("xl/workbook.xml", sheets)
        made.writestr(
            "xl/_rels/workbook.xml.rels", leads.format(office, relation, "worksheet", "worksheets/sheet1.xml")
        )
        sheet = f"<worksheet {space}><sheetData>{rows}</sheetData>{merged}</worksheet>"
        made.writestr("xl/worksheets/sheet1.xml", sheet)
    return path


@pytest.mark.parametrize("filler", [" ", "<c ", '<c r="A9"><f>1</f>', '<c r="A9" t='])
def test_formulas_are_looked_for_in_time(tmp_path: Path, filler: str) -> None:
    """A pattern that began anew at each place, and read to the end, would need 10^12 steps."""
    path = tmp_path / "made.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("xl/worksheets/sheet1.xml", '<c r="A1"><f>1</f>' + filler * 1_000_000)
        made.writestr("xl/worksheets/sheet2.xml", '<c r="A1"><f>1</f> <v></v></c><c r="A2" t="str"><f>1</f><v/></c>')
    assert count_uncalculated(path) == 1


def test_a_cell_is_filled_once_however_many_ranges_are_over_it(tmp_path: Path) -> None:
    rows = "".join(f'<row r="{at}"><c r="A{at}"><v>{at}</v></c></row>' for at in (1, 2, 20_000))
    ranges = '<mergeCell ref="A1:A20000"/>' * 200_000 + '<mergeCell ref="A2:A3"/>'
    path = _raw(tmp_path / "merged.xlsx", rows, f"<mergeCells>{ranges}</mergeCells>")
    (sheet,), _ = sheets_of(path, "merged")
    assert sheet.rows == [["1"]] * 20_000


@pytest.mark.parametrize("stray", ["XFD1048576", "A1048576", "XFD800"])
async def test_a_stray_cell_far_from_the_others_is_told_and_not_read_up_to(tmp_path: Path, stray: str) -> None:
    far = stray.strip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    rows = "".join(f'<row r="{at}"><c r="A{at}"><v>{at}</v></c><c r="K{at}"><v>1</v></c></row>' for at in range(1, 50))
    path = _raw(tmp_path / "stray.xlsx", f'{rows}<row r="{far}"><c r="{stray}" s="1"><v>1</v></c></row>')
    with pytest.raises(SourceUnreadable, match=r"stray\.xlsx has a sheet \(number 1\) that reaches row .*Ctrl\+End"):
        await open_source(str(path))


def test_a_sheet_that_is_wide_or_long_or_has_gaps_is_read(tmp_path: Path) -> None:
    wide = "".join(f'<c r="{letters_of(at)}1"><v>{at}</v></c>' for at in range(1, 600))
    rows = "".join(f'<row r="{at}"><c r="C{at}"><v>{at}</v></c></row>' for at in (2, 9_000))
    rows += '<row r="1048576"><c r="XFD1048576" s="1"/><c s="1" r="XFC1048576"></c></row>'  # these have but a format
    (sheet,), _ = sheets_of(_raw(tmp_path / "wide.xlsx", f'<row r="1">{wide}</row>{rows}'), "wide")
    assert (len(sheet.rows), len(sheet.rows[0])) == (9_000, 599)


def test_the_last_cell_is_found_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _raw(tmp_path / "a.xlsx", '<row r="77"><c r="AB77"><v>1</v></c></row>')
    for size in (7, 33, 64):
        monkeypatch.setattr(workbook, "_BLOCK", size)
        with zipfile.ZipFile(path) as archive:
            assert workbook._extent(archive, archive.getinfo("xl/worksheets/sheet1.xml"))[0] == (77, 28)


def test_too_many_sheets_and_too_much_when_unpacked_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for at in range(501):
            made.writestr(f"xl/worksheets/sheet{at}.xml", "<worksheet/>")
    with pytest.raises(SourceUnreadable, match=r"501 sheets, and at most 500 are read"):
        sheets_of(path, "many")
    monkeypatch.setattr(workbook, "MOST_UNPACKED", 100_000)
    bomb = _raw(tmp_path / "bomb.xlsx", " " * 200_000)
    with pytest.raises(SourceUnreadable, match="MB when it is unpacked"):
        sheets_of(bomb, "bomb")


async def test_a_text_file_with_too_many_columns_says_so(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{at}" for at in range(100_000)) + "\n" + ",".join(["1"] * 100_000) + "\n")
    with pytest.raises(SourceUnreadable, match=r"100,000 columns, and at most 16,384"):
        await open_source(str(path))


async def test_json_that_is_nested_too_deep_says_so(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text('[{"a":' + "[" * 100_000 + "]" * 100_000 + "}]")
    with pytest.raises(SourceUnreadable, match="depth"):
        await open_source(str(path))
