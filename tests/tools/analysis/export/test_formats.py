"""Results as files: whole, typed as far as the format knows types, and harmless in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.sheets import sheet

from longthread.errors import ResultTooLong
from longthread.tools.analysis import export_formats
from longthread.tools.analysis.export import TableFormat, write

COLUMNS = ["n", "text", "flag", "price", "day", "list", "=SUM(A1)"]
ROWS: list[Sequence[Any]] = [
    (1, 'a "quoted", 王芳\nline', True, Decimal("1.50"), date(2024, 1, 2), [1, "b"], None),
    (-2, "=HYPERLINK(1)", False, 2.5, None, {"a": 1}, "-1+1"),
    (None, " @cmd", None, None, None, None, "plain"),
]


def made(format_: TableFormat, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    file = io.BytesIO()
    write(format_, columns, rows, file)
    return file.getvalue()


def test_csv() -> None:
    read = list(csv.reader(io.StringIO(made(TableFormat.CSV, COLUMNS, ROWS).decode(), newline="")))
    assert read == [
        ["n", "text", "flag", "price", "day", "list", "'=SUM(A1)"],
        ["1", 'a "quoted", 王芳\nline', "true", "1.50", "2024-01-02", '[1, "b"]', ""],
        ["-2", "'=HYPERLINK(1)", "false", "2.5", "", '{"a": 1}', "'-1+1"],
        ["", "' @cmd", "", "", "", "", "plain"],
    ]


@pytest.mark.parametrize(
    "text",
    [
        *("=1", "+1", "-1+1", "-A1", "-1 day =1", "- 1", "@a", "\t=1", "\r=1", "  =1", "＝1", "\n=1"),
        *("-A$5", "-US$5", "-A$5 kr", "-5/a", "-5%/a", "-5 a+b", "-5 a(b)", "-5 a!b", "-5 a|b", "-5 A1", "-5 元＋a"),
    ],
)
def test_no_text_is_a_formula_in_csv(text: str) -> None:
    read = list(csv.reader(io.StringIO(made(TableFormat.CSV, ["a"], [[text]]).decode(), newline="")))
    assert read[1] == [f"'{text}"]


@pytest.mark.parametrize(
    "text",
    [
        *("-1", "-1,234.50", "-.5e-3", "-$1.00", "-5%", "-01:00:00", "-1 year -2 mons", "-infinity"),
        *("-1,234.50 kr", "-US$5.00", "-A$1,234.50", "-￥5.00", "-₩5", "-12.5元", "-38.0万元", "-5.00 ₽", "-12.5 zł"),
        *("-37.5 km", "-3.5 km/h", "-4°C", "-4‰", "-4 %", "-4 m²", "-4 sq. ft"),
    ],
)
def test_no_apostrophe_before_a_number(text: str) -> None:
    for value in (text, -1, Decimal("-107.6666666666666667"), float("-inf")):
        [[field]] = list(csv.reader(io.StringIO(made(TableFormat.CSV, ["a"], [[value]]).decode(), newline="")))[1:]
        assert field.startswith("-")


@pytest.mark.parametrize("name", ["id", "total"])
def test_a_whole_number_keeps_its_last_digit(name: str) -> None:
    rows: list[Sequence[Any]] = [[1000000000000001.0], [-1000000000000002.0], [52838.549999999996]]
    read = list(csv.reader(io.StringIO(made(TableFormat.CSV, [name], rows).decode(), newline="")))
    assert read[1:] == [["1000000000000001.0"], ["-1000000000000002.0"], ["52838.55"]]
    texts = [str(row[0][1]) for row in sheet(made(TableFormat.XLSX, [name], rows))[1:]]
    assert [float(text) for text in texts] == [1000000000000001.0, -1000000000000002.0, 52838.55]


def test_xlsx() -> None:
    read = sheet(made(TableFormat.XLSX, COLUMNS, ROWS))
    assert [text for _, text in read[0]] == COLUMNS
    assert {kind for kind, _ in read[0]} == {"inlineStr"}
    assert read[2][:4] == [(None, "-2"), ("inlineStr", "=HYPERLINK(1)"), ("b", "0"), (None, "2.5")]
    assert read[3][0] == (None, None)


def test_xlsx_takes_what_xml_cannot_hold() -> None:
    read = sheet(made(TableFormat.XLSX, ["a"], [["\x00\x01 <b> & \ud800"], ["x" * 40_000], [2**60]]))
    assert read[1] == [("inlineStr", "\ufffd\ufffd <b> & ?")]
    assert str(read[2][0][1]).endswith("… (40000 characters)")
    assert read[3] == [("inlineStr", str(2**60))]


def test_a_sheet_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_formats, "ROWS", 3)
    assert len(sheet(made(TableFormat.XLSX, ["a"], [[1], [2]]))) == 3
    with pytest.raises(ResultTooLong, match="A sheet holds 2 rows"):
        made(TableFormat.XLSX, ["a"], [[1], [2], [3]])


def test_parquet(tmp_path: Path) -> None:
    rows = [*ROWS, (2**70, "x", None, 3, None, None, None)]
    (tmp_path / "r.parquet").write_bytes(made(TableFormat.PARQUET, [*COLUMNS[:-1], "N"], rows))
    relation = duckdb.read_parquet(str(tmp_path / "r.parquet"))
    assert relation.columns == ["n", "text", "flag", "price", "day", "list", "N_2"]
    assert [str(one) for one in relation.types] == ["VARCHAR", "VARCHAR", "BOOLEAN", "DOUBLE", *["VARCHAR"] * 3]
    assert [row[0] for row in relation.fetchall()] == ["1", "-2", None, str(2**70)]


def test_parquet_of_whole_numbers_and_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "r.parquet").write_bytes(made(TableFormat.PARQUET, ["a"], [[1], [None], [-(2**63)]]))
    relation = duckdb.read_parquet(str(tmp_path / "r.parquet"))
    assert ([str(one) for one in relation.types], relation.fetchall()) == (["BIGINT"], [(1,), (None,), (-(2**63),)])
    (tmp_path / "e.parquet").write_bytes(made(TableFormat.PARQUET, ["a"], []))
    assert duckdb.read_parquet(str(tmp_path / "e.parquet")).fetchall() == []


def test_parquet_keeps_the_digits_of_a_column_of_whole_numbers_and_others(tmp_path: Path) -> None:
    rows = [[9007199254740993, 1, Decimal("0.5")], [1.5, 2.5, 7]]
    (tmp_path / "r.parquet").write_bytes(made(TableFormat.PARQUET, ["a", "b", "c"], rows))
    relation = duckdb.read_parquet(str(tmp_path / "r.parquet"))
    assert relation.fetchall() == [("9007199254740993", 1.0, 0.5), ("1.5", 2.5, 7.0)]
