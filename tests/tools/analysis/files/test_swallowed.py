"""What a file might lose is told: rows in an open quote, digits of long numbers, currencies; nested JSON opens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.toolbox import analysis_tools

HEAD = "id,name,note\n" + "".join(f"{at},n{at},ok\n" for at in range(15))
MORE = "".join(f"{at},n{at},ok\n" for at in range(16, 40))


async def _opened(tmp_path: Path, name: str, text: str) -> dict[str, dict[str, Any]]:
    """The description of each table of a file, with its rows."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    source = await open_source(str(tmp_path / name))
    tools = {tool.name: tool for tool in analysis_tools(source)}
    try:
        found = {}
        for table in (await tools["list_tables"].call({}))["data"]["tables"]:
            about = (await tools["describe_table"].call({"table": table}))["data"]
            rows = (await tools["run_sql"].call({"sql": f'SELECT * FROM "{table}"'}))["data"]["rows"]
            found[table] = {**about, "values": rows}
        return found
    finally:
        await source.close()


async def test_a_loss_is_told_to_who_reads_the_table_alone(tmp_path: Path) -> None:
    (tmp_path / "name.csv").write_text(f'{HEAD}15,"open,ok\n{MORE}', encoding="utf-8")
    (tmp_path / "names.csv").write_text("name,n\nAnn,1\n", encoding="utf-8")
    source = await open_source(str(tmp_path))
    tools = {tool.name: tool for tool in analysis_tools(source)}
    try:
        for sql, told in (
            ("SELECT name FROM names", 0),
            ("SELECT count(*) AS n FROM name", 1),
            ("WITH x AS (SELECT 1 AS n) SELECT x.n FROM x, NAME", 1),
        ):
            data = (await tools["run_sql"].call({"sql": sql}))["data"]
            assert len([note for note in data["notes"] if "never closed" in note]) == told, sql
    finally:
        await source.close()


@pytest.mark.parametrize(
    ("end", "rows", "said"),
    [
        ("", 40, "Line 17: a quote is opened and never closed"),
        ('40,"closed",ok\n', 41, "Line 17: a quote is opened and never closed"),
        ('40,he said "hi",ok\n41,x,y\n', 17, "closed only in line 42, so 26 lines are in one cell"),
    ],
)
async def test_an_open_quote_is_told_with_its_line(tmp_path: Path, end: str, rows: int, said: str) -> None:
    table = (await _opened(tmp_path, "notes.csv", f'{HEAD}15,"open,ok\n{MORE}{end}'))["notes"]
    assert table["rows"] == rows
    assert any(said in note for note in table["notes"])


@pytest.mark.parametrize(
    ("cell", "lines"),
    [
        ('1,"Ann,10\n2,Bob",20', 2),
        ('1,"Ann,10\r\n2,Bob",20', 2),
        ('1,Ann,"10\n2,Bob,20"', 2),
        ('"1,Ann,10\n2",Bob,20', 2),
        ('1,"Ann,\n2,Bob",20', 2),
        ('1,"Ann,10\n\n2,Bob",20', 3),
        ('1,"Ann,10\n2,Bob,20\n3,Cid",30', 3),
        ('1,"Ann,10\n2,Bob,20\n3,Cid,30\n4,Dee,40\n5,Eve",50', 5),
    ],
)
async def test_rows_in_a_quote_are_told_however_few(tmp_path: Path, cell: str, lines: int) -> None:
    (tmp_path / "few.csv").write_text(f"id,name,amount\n{cell}\n8,Fay,60\n9,Gus,70\n", encoding="utf-8", newline="")
    source = await open_source(str(tmp_path / "few.csv"))
    try:
        await source.schema()
        said = f"opened and closed only in line {lines + 1}, so {lines} lines are in one cell"
        assert sum(said in note for note in source.notes_on("few")) == 1
        assert sum(said in note for note in source.notes) == 1  # what a run publishes as its warnings
        assert sum(said in note for note in source.notes_about(["few"])) == 1
    finally:
        await source.close()


@pytest.mark.parametrize(
    "text",
    ['1,"Dear Ann,\nBen",2', '1,"Dear Ann,\nyours, Ben",2', '1,2,"Dear Ann,\nyours, as ever, Ben"', '1,"a\nb",2'],
)
async def test_a_letter_of_two_lines_is_no_row(tmp_path: Path, text: str) -> None:
    table = (await _opened(tmp_path, "letters.csv", f"id,text,x\n{text}\n3,plain,4\n"))["letters"]
    assert table["rows"] == 2 and not table.get("notes")


async def test_a_quote_over_several_lines_of_text_is_none(tmp_path: Path) -> None:
    table = (await _opened(tmp_path, "letters.csv", 'id,text,x\n1,"Dear Ann,\nhello\n\nBen",2\n3,plain,4\n'))["letters"]
    assert table["rows"] == 2 and not table.get("notes")


@pytest.mark.parametrize(
    "values",
    [["826000000000000123", "826000000000000124", "8.26E+17"], ["6222020202020202020", "6.22E+18"],
     ["13800138000", "13800138001", "1.38E+10"]],
)  # fmt: skip
async def test_long_numbers_beside_a_shortened_one_stay_as_they_are(tmp_path: Path, values: list[str]) -> None:
    rows = "".join(f"{value},1\n" for value in values)
    table = (await _opened(tmp_path, "orders.csv", f"order_no,n\n{rows}"))["orders"]
    assert [row[0] for row in table["values"]] == values
    assert any(f'"{values[-1]}" one that a spreadsheet has shortened' in note for note in table["notes"])


async def test_numbers_of_science_stay_numbers(tmp_path: Path) -> None:
    table = (await _opened(tmp_path, "stars.csv", "mass,n\n1.99E+30,1\n123456789012.5,2\n12345678901234,3\n"))["stars"]
    assert table["columns"][0]["type"] == "DOUBLE"


async def test_currencies_and_percent_are_told_and_never_mixed(tmp_path: Path) -> None:
    text = (
        "a,b,c,d,e,f\n"
        '"$1,234.50","€ 1.234,50",12.5%,￥100,"1,234 元",$5\n"$2,000.00","€ 2.000,00",3%,￥200,"2,000 元",€6\n'
    )
    table = (await _opened(tmp_path, "money.csv", text))["money"]
    assert table["values"][0] == [1234.5, 1234.5, 12.5, 100, 1234, "$5"]
    for column, said in {"a": "in $", "b": "in €", "c": "in percent", "d": "in ￥", "e": "in 元"}.items():
        assert any(note.startswith(f'Column "{column}": {said}') for note in table["notes"]), column
    assert any('Column "f": kept as text: its amounts are in $, €' in note for note in table["notes"])


async def test_objects_are_columns_and_their_lists_tables(tmp_path: Path) -> None:
    orders = [
        {"id": 7, "user": {"name": "Ann", "place": {"city": "York"}}, "items": [{"sku": "a", "n": 1}, {"sku": "b"}]},
        {"id": 9, "user": {"name": "Ben", "place": {"city": "Hull"}}, "items": [], "user_name": "other"},
    ]
    tables = await _opened(tmp_path, "orders.json", json.dumps(orders))
    assert [column["name"] for column in tables["orders"]["columns"]][:3] == ["id", "user_name", "user_place_city"]
    assert tables["orders"]["values"][0][:3] == [7, "Ann", "York"]
    assert tables["orders_items"]["values"] == [[7, "a", 1], [7, "b", None]]
    assert any('"items" are a table' in note and "parent_id is id" in note for note in tables["orders"]["notes"])


async def test_lists_in_lists_keep_their_way_up(tmp_path: Path) -> None:
    teams = [
        {"team": t, "people": [{"name": n, "pets": [{"pet": f"{n}{p}"} for p in range(2)]}]} for t, n in ("rA", "bB")
    ]
    tables = await _opened(tmp_path, "teams.json", json.dumps(teams))
    assert sorted(tables) == ["teams", "teams_people", "teams_people_pets"]
    people = {row[0]: row for row in tables["teams_people"]["values"]}
    by_name = {str(column["name"]): at for at, column in enumerate(tables["teams_people"]["columns"])}
    for row in tables["teams_people_pets"]["values"]:
        assert people[row[0]][by_name["name"]] == row[1][0]
    assert len(tables["teams_people_pets"]["values"]) == 4
