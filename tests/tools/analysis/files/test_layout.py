from __future__ import annotations

import csv
import io

import pytest

from longthread.tools.analysis.files.layout import footer, form_of, layout_of, read_sample


def _rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize(
    ("text", "names", "start"),
    [
        ("country,2021,2022\nA,1,2\nB,4,5\n", ("country", "2021", "2022"), 1),
        ("country,2021,2022\nA,2000,2010\nB,1990,1985\n", ("country", "2021", "2022"), 1),
        ("2019,2020,2021\n5,6,7\n8,9,10\n", ("2019", "2020", "2021"), 1),
        ("id,name,2021\n1,x,5\n", ("id", "name", "2021"), 1),
        ("product,2021-01,2021-02\nA,1,2\n", ("product", "2021-01", "2021-02"), 1),
        ("product,1/1/20,1/2/20\nA,1,2\n", ("product", "1/1/20", "1/2/20"), 1),
        ("类别,2021年,2022年\n苹果,1,2\n", ("类别", "2021年", "2022年"), 1),
        ("Region,Q1,Q2\nN,1,2\n", ("Region", "Q1", "Q2"), 1),
        ("id,1,2,3\n7,5,6,9\n", ("id", "1", "2", "3"), 1),
        (",0,1\na,5,6\n", ("column0", "0", "1"), 1),
        ("a,b\n", ("a", "b"), 1),
        ("name,name,\nx,y,1\n", ("name", "name_1", "column2"), 1),
        ("Ann,1990\nBob,1985\n", ("column0", "column1"), 0),
        ("Ann,2000,2001\nBob,2001,2002\n", ("column0", "column1", "column2"), 0),
        ("1,2,3\n4,5,6\n", ("column0", "column1", "column2"), 0),
        ("Ann,Paris,34\nBob,Rome,45\n", ("column0", "column1", "column2"), 0),
        ("Ann,Paris\nBob,Rome\nCid,Paris\n", ("column0", "column1"), 0),
        ("Launches of 2020\n\na,b\n1,2\n", ("a", "b"), 3),
        ("Report,,\n,,\nid,name,amount\n1,x,2.5\n", ("id", "name", "amount"), 3),
        ("Data Source,WDI,\n\nUpdated,2021-05-01,\n\nCountry,Code,1960\nAruba,ABW,1\n", ("Country", "Code", "1960"), 5),
        (",2021,,2022,\ncountry,a,b,a,b\nX,1,2,3,4\n", ("country", "2021 a", "2021 b", "2022 a", "2022 b"), 2),
        ("x,y\nr1,1,2\nr2,3,4\n", ("column0", "x", "y"), 1),
    ],
)
def test_headers_and_titles(text: str, names: tuple[str, ...], start: int) -> None:
    layout = layout_of(_rows(text))
    assert (layout.names, layout.start) == (names, start)


@pytest.mark.parametrize(
    ("text", "width", "count"),
    [
        ("1,x,2\n2,y,3\nSource: us\n", 3, 1),
        ("1,x,2\n2,y,3\n,,\nAll amounts in euros,,\n", 3, 1),
        ("1,2\n3,4\n\n来源：统计局\n", 2, 1),
        ("1,x,2\n2,y,3\n\n* estimated\nSource: us\n", 3, 2),
        ("a,1\nb,\n", 2, 0),
        ("1,2\n3,4\nx\n", 2, 0),
        ("a,1,2\nb,,\n", 3, 0),
        ("a\nb\n", 1, 0),
    ],
)
def test_notes_under_a_table(text: str, width: int, count: int) -> None:
    assert footer(_rows(text), width) == count


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("sep=;\na;b\n1;2\n", [["a", "b"], ["1", "2"]]),
        ('"sep=\t"\na\tb\n', [["a", "b"]]),
        ("a;b\n1,5;2,5\n3,5;4,5\n", [["a", "b"], ["1,5", "2,5"], ["3,5", "4,5"]]),
        ("a|b|c\n1|x, y|2\n", [["a", "b", "c"], ["1", "x, y", "2"]]),
        ('a,b\n1,"x\ny"\n2,"he said ""hi"""\n', [["a", "b"], ["1", "x\ny"], ["2", 'he said "hi"']]),
        ('a,b\n1,"he said \\"hi\\", ok"\n', [["a", "b"], ["1", 'he said "hi", ok']]),
        ("'a','b'\n'1','x, y'\n", [["a", "b"], ["1", "x, y"]]),
        ('a\tb\n"x\t2\n3\t4\n', [["a", "b"], ['"x', "2"], ["3", "4"]]),
        ("value\n1,5\n2,7\n", [["value"], ["1,5"], ["2,7"]]),
        ("价格\n￥1,200.50\n￥3\n", [["价格"], ["￥1,200.50"], ["￥3"]]),
        ("address\n12 Main St, Paris\n3 High St, Rome\n", [["address"], ["12 Main St, Paris"], ["3 High St, Rome"]]),
    ],
)
def test_delimiters_and_quotes(text: str, rows: list[list[str]]) -> None:
    assert read_sample(form_of(text, whole=True), text, whole=True)[0] == rows
