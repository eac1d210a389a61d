from __future__ import annotations

import gzip
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from longthread.errors import InvalidInput, SourceNotFound, SourceUnreadable
from longthread.settings import Settings
from longthread.tools.analysis.files.listing import stem_of
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.quoting import UniqueNames
from longthread.tools.analysis.source import Source
from longthread.tools.sources import Opener

Opened = Callable[..., Awaitable[Source]]


def _write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content", "columns", "rows"),
    [
        ("plain.csv", "id,名称\n1,长征\n2,猎鹰\n", ["id", "名称"], [[1, "长征"], [2, "猎鹰"]]),
        ("semicolon.csv", "a;b\n1,5;x\n", ["a", "b"], [[1.5, "x"]]),
        ("years.csv", "country,2021,2022\nA,1,2\n", ["country", "2021", "2022"], [["A", 1, 2]]),
        ("said.csv", "sep=;\na;b\n1;2\n", ["a", "b"], [[1, 2]]),
        ("western.csv", "id;stadt\n1;Köln\n2;Lübeck\n".encode("cp1252"), ["id", "stadt"], [[1, "Köln"], [2, "Lübeck"]]),
        ("taiwan.csv", "編號,城市\n1,臺北\n2,高雄\n".encode("big5"), ["編號", "城市"], [[1, "臺北"], [2, "高雄"]]),
        ("bare.csv", "编号,名称\n1,神舟\n".encode("utf-16-le"), ["编号", "名称"], [[1, "神舟"]]),
        ("mixed.csv", b"a,b\r\n1,2\n3,4\r\n", ["a", "b"], [[1, 2], [3, 4]]),
        ("notes.csv", "Report\n\nid,name,sum\n1,x,2\n2,y,3\n\nSource: us\n", ["id", "name", "sum"],
         [[1, "x", 2], [2, "y", 3]]),
        ("comma_end.csv", "a,b,\n1,2,\n", ["a", "b"], [[1, 2]]),
        ("stray2.csv", 'a,b\n1,5" pipe\n2,"x"y\n', ["a", "b"], [[1, '5" pipe'], [2, "xy"]]),
        ("marked.json", '\ufeff[{"a": 1}]', ["a"], [[1]]),
        ("wide.json", '[{"a": "é"}]'.encode("utf-16"), ["a"], [["é"]]),
        ("answer.json", '{"page": 1, "data": [{"a": 1, "b": {"c": 2}}, {"a": 2, "b": null}]}', ["a", "b_c"],
         [[1, 2], [2, None]]),
        ("marked.jsonl", '\ufeff{"a": 1}\n\n{"a": 2}\n', ["a"], [[1], [2]]),
        ("gbk.csv.gz", gzip.compress("编号,名称\n1,神舟\n".encode("gbk"), mtime=0), ["编号", "名称"], [[1, "神舟"]]),
        ("tabs.tsv", "a\tb\n1\tx, y\n", ["a", "b"], [[1, "x, y"]]),
        ("quoted.csv", 'a,b\n"x, y","two\nlines"\n', ["a", "b"], [["x, y", "two\nlines"]]),
        ("windows.csv", "\ufeffa,b\r\n1,2\r\n", ["a", "b"], [[1, 2]]),
        ("chinese.csv", "编号,名称\n1,长征五号\n".encode("gb18030"), ["编号", "名称"], [[1, "长征五号"]]),
        ("excel.csv", "编号,名称\n1,神舟\n".encode("utf-16"), ["编号", "名称"], [[1, "神舟"]]),
        ("dates.csv", "d,t\n2020-01-02,2020-01-02 03:04:05\n", ["d", "t"], [["2020-01-02", "2020-01-02T03:04:05"]]),
        ("ragged.csv", "a,b,c\n1,2\n1,2,3,4\nx,y\n", ["a", "b", "c", "column3"],
         [["1", "2", None, None], ["1", "2", 3, 4], ["x", "y", None, None]]),
        ("ragged.tsv", "a\tb\n1\n2\t3\t4\n", ["a", "b", "column2"], [[1, None, None], [2, 3, 4]]),
        ("stray.tsv", 'a\tb\n"x\t2\n3\t4\n', ["a", "b"], [['"x', 2], ["3", 4]]),
        ("titled.csv", "Launches of 2020\n\na,b\n1,2\n", ["a", "b"], [[1, 2]]),
        ("late.csv", "a\n" + "1\n" * 30_000 + "x\n", ["a"], [["1"]] * 100),
        ("header.csv", "a,b\n", ["a", "b"], []),
        ("list.json", '[{"a": 1, "b": {"c": [1, 2]}}, {"a": 2}]', ["a", "b_c"], [[1, [1, 2]], [2, None]]),
        ("lines.jsonl", '{"a": 1}\n{"a": 2}\n', ["a"], [[1], [2]]),
        ("packed.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0), ["a", "b"], [[1, 2]]),
    ],
)  # fmt: skip
async def test_a_file_is_a_table(
    opened: Opened, ask: Any, tmp_path: Path, name: str, content: str | bytes, columns: list[str], rows: list[Any]
) -> None:
    source = await opened(_write(tmp_path / name, content))
    table = name.split(".")[0]
    data = (await ask(source, "run_sql", sql=f"SELECT * FROM {table}"))["data"]
    assert (data["columns"], data["rows"]) == (columns, rows)


async def test_parquet_with_time_zones_and_nested_values(opened: Opened, ask: Any, tmp_path: Path) -> None:
    duckdb.execute(
        "COPY (SELECT TIMESTAMPTZ '2020-01-01 00:00:00+00' AS t, [TIMESTAMPTZ '2020-01-01 00:00:00+00'] AS l, "
        f"{{'a': 1}} AS s, 1.5::DECIMAL(9,2) AS d) TO '{tmp_path}/zones.parquet'"
    )
    source = await opened(tmp_path / "zones.parquet")
    data = (await ask(source, "run_sql", sql="SELECT *, t FROM zones ORDER BY t -- newest"))["data"]
    assert data["columns"] == ["t", "l", "s", "d", "t_1"]
    assert data["rows"][0][0].startswith("2020-01-01T00:00:00")
    assert data["rows"][0][2:4] == [{"a": 1}, 1.5]
    described = (await ask(source, "describe_table", table="zones"))["data"]
    assert described["columns"][0]["min"].startswith("2020-01-01")


async def test_a_folder_is_a_database(opened: Opened, ask: Any, tmp_path: Path) -> None:
    _write(tmp_path / "sales 2024.csv", "id,customer\n1,2\n")
    _write(tmp_path / "sales-2024.tsv", "id\tx\n1\t2\n")
    _write(tmp_path / "客户.json", '[{"id": 2, "name": "李"}]')
    _write(tmp_path / ".hidden.csv", "a\n1\n")
    _write(tmp_path / "readme.txt", "not a table")
    _write(tmp_path / "broken.csv", b"\x00\x01\x02")
    _write(tmp_path / "order.csv", "a\n1\n")
    source = await opened(tmp_path)
    listing = (await ask(source, "list_tables"))["data"]
    assert listing["tables"] == ["order", "sales_2024", "sales_2024_2", "客户"]
    assert listing["about"]["客户"] == {"rows": 1, "kind": "table"}
    assert listing["notes"] == [
        "broken.csv is left out: broken.csv is a binary file, not text.",
        "sales-2024.tsv is the table sales_2024_2, since another one is called sales_2024.",
        "readme.txt is left out: a folder's .txt files are taken for plain text. Name it .csv if it is a table.",
    ]
    joined = 'SELECT c.name, o.a FROM sales_2024 s JOIN 客户 c ON c.id = s.customer, "order" o'
    assert (await ask(source, "run_sql", sql=joined))["data"]["rows"] == [["李", 1]]
    assert (await ask(source, "sample_rows", table="order"))["data"]["rows"] == [[1]]


async def test_a_folder_of_nothing_readable_says_why(tmp_path: Path) -> None:
    _write(tmp_path / "a.csv", b"\x00")
    _write(tmp_path / "b.csv", b"\x00")
    with pytest.raises(SourceUnreadable, match=r"a\.csv.*b\.csv"):
        await open_source(str(tmp_path))


async def test_a_big_file_is_read_in_place(opened: Opened, ask: Any, tmp_path: Path) -> None:
    path = _write(tmp_path / "big's.csv", "id,name\n" + "".join(f"{n},n{n}\n" for n in range(200_000)))
    source = await opened(path, loaded_file_mb=1)
    assert (await ask(source, "run_sql", sql="SELECT count(*), max(id) FROM big_s"))["data"]["rows"] == [
        [200_000, 199_999]
    ]
    about = (await ask(source, "list_tables"))["data"]["about"]["big_s"]
    assert about == {"rows": 200_000, "kind": "table"}
    assert (await ask(source, "describe_table", table="big_s"))["data"]["columns"][0]["max"] == 199_999


async def test_a_database_of_files_reaches_no_other_file(opened: Opened, tmp_path: Path) -> None:
    """What the guard refuses, the engine refuses too."""
    _write(tmp_path / "a.parquet", b"")
    duckdb.execute(f"COPY (SELECT 1 AS a) TO '{tmp_path}/a.parquet'")
    other = _write(tmp_path / "other.csv", "secret\n1\n")
    source = await opened(tmp_path / "a.parquet")
    before = sorted(path.name for path in tmp_path.iterdir())
    for sql in (
        f"SELECT * FROM read_csv('{other}')",
        f"SELECT * FROM '{other}'",
        f"SELECT * FROM glob('{tmp_path}/*')",
        f"SELECT content FROM read_text('{other}')",
        f"COPY (SELECT 1) TO '{tmp_path}/new.csv'",
        f"COPY (SELECT 2 AS a) TO '{tmp_path}/a.parquet' (USE_TMP_FILE false)",
        f"ATTACH '{tmp_path}/new.duckdb'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CREATE TABLE x (a INT)",
        "DROP VIEW a",
        "SELECT 1; DROP VIEW a",
        "WITH x AS (INSERT INTO a VALUES (1) RETURNING a) SELECT * FROM x",
        "CALL pragma_version()",
    ):
        with pytest.raises(Exception, match=r"not run|refused the query"):
            await source.work(lambda connection, sql=sql: list(connection.query(sql)))  # type: ignore[misc]
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert await source.work(lambda connection: connection.query("SELECT * FROM a").first()) == (1,)


async def test_changed_files_are_read_again(opened: Opened, ask: Any, tmp_path: Path) -> None:
    path = _write(tmp_path / "t.csv", "a\n1\n")
    source = await opened(tmp_path)
    first = await source.fingerprint()
    _write(path, "a\n1\n2\n")
    os.utime(path, ns=(1, 1))
    assert await source.fingerprint() == first
    assert (await ask(source, "run_sql", sql="SELECT count(*) FROM t"))["data"]["rows"] == [[2]]
    _write(tmp_path / "u.csv", "b\n1\n")
    assert await source.fingerprint() != first
    assert (await ask(source, "list_tables"))["data"]["tables"] == ["t", "u"]


async def test_a_file_that_went_away_is_missed(opened: Opened, tmp_path: Path) -> None:
    path = _write(tmp_path / "t.csv", "a\n1\n")
    source = await opened(path)
    path.unlink()
    with pytest.raises(SourceNotFound):
        await source.fingerprint()


def test_names_of_tables() -> None:
    paths = [
        Path(name) for name in ("a b.csv", "a-b.CSV", "A_B.json", "x.y.parquet", "---.csv", "数据 1.csv", "z.csv.gz")
    ]
    names = UniqueNames()
    assert [names.take(stem_of(path)) for path in paths] == ["a_b", "a_b_2", "A_B_3", "x_y", "data", "数据_1", "z"]


async def test_a_cell_of_ten_million_characters(opened: Opened, ask: Any, tmp_path: Path) -> None:
    path = _write(tmp_path / "long.csv", f"id,text\n1,{'x' * 10_000_000}\n2,y\n")
    for loaded in (64, 1):
        source = await opened(path, loaded_file_mb=loaded)
        data = (await ask(source, "run_sql", sql="SELECT id, length(text) FROM long"))["data"]
        assert data["rows"] == [[1, 10_000_000], [2, 1]]
    with pytest.raises(SourceUnreadable, match="a line is longer than can be read.*1000000 bytes") as refused:
        await open_source(str(path), limits=Limits(value_bytes=1_000_000))
    assert len(str(refused.value)) < 400


async def test_a_file_that_may_not_be_read_is_left_out(
    opened: Opened, ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path / "a.csv", "a\n1\n")
    closed = _write(tmp_path / "closed.csv", "a\n1\n")
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, *rest: Path(path).name != "closed.csv" and allowed(path, *rest))
    listing = (await ask(await opened(tmp_path, isolated=False), "list_tables"))["data"]
    assert listing["tables"] == ["a"]
    assert listing["notes"] == ["closed.csv is left out: closed.csv: permission denied."]
    with pytest.raises(SourceUnreadable, match="permission denied"):
        await open_source(str(closed), limits=Limits(isolated=False))


async def test_numbers_for_people_are_read_where_they_are_unambiguous_and_noted(
    opened: Opened, ask: Any, tmp_path: Path
) -> None:
    rows = ['1,"1,200.50",$300,7,00123,Ann,"1,234"', '2,"3,400.00",$20,N/A,00124,Bob,"5,678"']
    rows.append('3,12.5,$1,8,00125,77,"9,012"')
    _write(tmp_path / "n.csv", "id,price,dollars,score,code,name,either\n" + "\n".join(rows) + "\n")
    source = await opened(tmp_path)
    described = (await ask(source, "describe_table", table="n"))["data"]
    types = {column["name"]: column["type"] for column in described["columns"]}
    assert types == {
        "id": "BIGINT", "price": "DOUBLE", "dollars": "BIGINT", "score": "BIGINT", "code": "VARCHAR", "name": "VARCHAR",
        "either": "VARCHAR",
    }  # fmt: skip
    assert described["notes"] == [
        'Column "price": numbers are read as 1,234.56.',
        'Column "dollars": in $, which is not part of the numbers.',
        'Column "score": 1 value such as "N/A" is read as missing.',
        'Column "code": kept as text: values such as "00123" begin with zeros.',
        'Column "either": kept as text: "1,234" may be written with thousands or with a decimal comma.',
    ]
    listed = (await ask(source, "list_tables"))["data"]["notes"]
    assert listed == [f"n: {note}" for note in described["notes"]]
    query = "SELECT sum(price), sum(dollars), sum(score) FROM n"
    assert (await ask(source, "run_sql", sql=query))["data"]["rows"] == [[4613.0, 321, 15]]


async def test_rows_of_several_lengths_are_told(opened: Opened, ask: Any, tmp_path: Path) -> None:
    source = await opened(_write(tmp_path / "r.csv", "a,b\n1,2\n3\n4,5,6\n"))
    notes = (await ask(source, "list_tables"))["data"]["notes"]
    assert notes == ["r: 2 rows have fewer or more values than the header has names (line 3, 4)."]


async def test_a_sum_at_the_end_is_told(opened: Opened, ask: Any, tmp_path: Path) -> None:
    source = await opened(_write(tmp_path / "s.csv", "城市,销量\n北京,1\n上海,2\n合计,3\n"))
    assert (await ask(source, "list_tables"))["data"]["notes"] == [
        's: Its last row begins with "合计": it may be a sum of the others.'
    ]


@pytest.mark.parametrize(
    ("label", "is_sum"),
    [
        *(
            (label, True)
            for label in ("TOTAL:", "Grand Total", "Subtotal", "Sous-total", "Total général", "Gesamtsumme")
        ),
        *((label, True) for label in ("Total ge\u0301ne\u0301ral", "Totale generale", "Итого", "总计", "합계")),
        *((label, False) for label in ("TotalEnergies", "Total Wine", "Summer", "Generalvertrag", "计算机")),
    ],
)
async def test_a_sum_is_known_by_its_label(opened: Opened, ask: Any, tmp_path: Path, label: str, is_sum: bool) -> None:
    source = await opened(_write(tmp_path / "s.csv", f"city,n\nParis,1\nLyon,2\n{label},3\n"))
    notes = (await ask(source, "list_tables"))["data"].get("notes", [])
    assert len([note for note in notes if "may be a sum" in note]) == is_sum


async def test_an_encoding_can_be_said(
    opened: Opened, ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _write(tmp_path / "t.csv", "a,b\n1,é\n".encode("cp437"))
    source = await opened(f"{path}?encoding=cp437")
    assert source.spec == f"{path}?encoding=cp437"
    assert (await ask(source, "run_sql", sql="SELECT b FROM t"))["data"]["rows"] == [["é"]]
    assert (await ask(source, "list_tables"))["data"]["notes"] == ["t: Read as CP437, as it was said."]
    monkeypatch.setenv("LONGTHREAD_FILE_ENCODING", "cp437")
    configured = await Opener(Settings.load(env_file=None)).open(str(path), "ada")
    assert (await ask(configured, "run_sql", sql="SELECT b FROM t"))["data"]["rows"] == [["é"]]
    await configured.close()
    with pytest.raises(SourceUnreadable, match=r"t\.csv is not UTF-8"):
        await open_source(f"{path}?encoding=utf-8")
    with pytest.raises(InvalidInput, match="There is no encoding 'klingon'"):
        await open_source(f"{path}?encoding=klingon")


async def test_the_notes_of_tables_stay_behind_a_policy(ask: Any, tmp_path: Path) -> None:
    path = _write(tmp_path / "p.csv", 'name,pay\nAnn,"$1,200"\nBob,N/A\n')
    policies = _write(tmp_path / "policies.yaml", f"sources: [{{source: {path}, tables: {{p: {{hide: [pay]}}}}}}]")
    async with await Opener(Settings.load(env_file=None, source_policies=policies)).open(str(path), "ada") as source:
        assert "notes" not in (await ask(source, "list_tables"))["data"]
        assert "notes" not in (await ask(source, "describe_table", table="p"))["data"]
