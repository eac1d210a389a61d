"""A value is what the database holds: on every engine, in what the model and a browser read, and in every file."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from tests import mysqlserver
from tests.awkward import MYSQL_TABLE, VALUES, Awkward
from tests.engines import ENGINES
from tests.sheets import sheet

from longthread.tools.analysis.export import TableFormat, write
from longthread.tools.analysis.result import LARGEST, iso
from longthread.tools.analysis.source import Source

Opened = Callable[..., Awaitable[Source]]
_TEXT = {"sqlite": "TEXT", "duckdb": "VARCHAR", "postgresql": "text", "mysql": "CHAR"}
_FROM = {"mysql": " FROM t"}


class Asked:
    """A source, and its server's own words."""

    def __init__(self, source: Source, told: Callable[[str], Sequence[Any]]) -> None:
        self.source = source
        self.told = told
        self.values: list[Awkward] = VALUES[source.dialect]
        self.ending = _FROM.get(source.dialect, "")

    @property
    def sql(self) -> str:
        return f"SELECT {', '.join(f'{value.sql} AS c{at}' for at, value in enumerate(self.values))}{self.ending}"

    def texts(self) -> list[str]:
        """Each value as the server itself writes it, with its times by ISO."""
        kind = _TEXT[self.source.dialect]
        casts = (f"CAST({value.sql} AS {kind})" if value.text is None else "NULL" for value in self.values)
        pairs = zip(self.values, self.told(f"SELECT {', '.join(casts)}{self.ending}"), strict=True)
        return [iso(str(text)) if value.text is None else value.text for value, text in pairs]

    async def file(self, format_: TableFormat, sql: str | None = None) -> bytes:
        """The result as a file."""
        made = io.BytesIO()

        def work(connection: Any) -> None:
            rows = connection.query(sql or self.sql)
            write(format_, rows.columns, rows, made, binary=rows.binary, marked=True)

        await self.source.work(work)
        return made.getvalue()


@pytest.fixture(params=ENGINES)
async def asked(
    request: pytest.FixtureRequest, opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Asked:
    monkeypatch.setenv("TZ", "UTC")
    if request.param == "sqlite":
        with closing(sqlite3.connect(tmp_path / "v.sqlite")) as made:
            made.execute("CREATE TABLE t (a INTEGER)")
        source = await opened(tmp_path / "v.sqlite")
        return Asked(source, lambda sql: sqlite3.connect(":memory:").execute(sql).fetchone())
    if request.param == "duckdb":
        duckdb.connect(str(tmp_path / "v.duckdb")).execute("CREATE TABLE t (a INTEGER)").close()
        return Asked(await opened(tmp_path / "v.duckdb"), lambda sql: duckdb.connect().execute(sql).fetchone() or ())
    if request.param == "mysql":
        url = str(request.getfixturevalue("mysql_url"))
        mysqlserver.run(url, MYSQL_TABLE)
        return Asked(await opened(url), lambda sql: _of_mysql(url, sql))
    url = str(request.getfixturevalue("postgres_url"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TYPE tier AS ENUM ('gold', 'silver'); CREATE TABLE t (a int)")
        connection.execute(f'ALTER DATABASE "{connection.info.dbname}" SET timezone = "UTC"'.encode())
    return Asked(await opened(url), lambda sql: _of_postgresql(url, sql))


def _of_mysql(url: str, sql: str) -> Sequence[Any]:
    with closing(mysqlserver.connected(url)) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchone())


def _of_postgresql(url: str, sql: str) -> Sequence[Any]:
    with psycopg.connect(url) as connection:
        return connection.execute(sql.encode()).fetchone() or ()


async def test_what_the_model_and_a_browser_read(asked: Asked, ask: Any) -> None:
    found = (await ask(asked.source, "run_sql", sql=asked.sql))["data"]
    shown = {value.sql: cell for value, cell in zip(asked.values, found["rows"][0], strict=True)}
    assert shown == {value.sql: value.cell for value in asked.values}
    assert json.loads(json.dumps(found, allow_nan=False), parse_int=_as_javascript) == found
    numbers = [cell for cell in found["rows"][0] if isinstance(cell, int | float)]
    assert numbers and all(abs(number) <= LARGEST for number in numbers)


def _as_javascript(digits: str) -> int:
    return int(float(digits))


async def test_csv_has_all_digits_and_a_mark(asked: Asked) -> None:
    text = (await asked.file(TableFormat.CSV)).decode()
    assert text.startswith("\ufeffc0,c1,")
    [_, row] = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    pairs = {value.sql: field for value, field in zip(asked.values, row, strict=True)}
    assert pairs == {value.sql: text for value, text in zip(asked.values, asked.texts(), strict=True)}


async def test_xlsx_and_parquet_have_what_csv_has(asked: Asked, tmp_path: Path) -> None:
    texts = asked.texts()
    for value, (kind, text), wanted in zip(
        asked.values, sheet(await asked.file(TableFormat.XLSX))[1], texts, strict=True
    ):
        is_day = kind is None and "-" in wanted[1:] and text is not None  # a number of days, as programs count them
        read = _as_moment(text, wanted) if is_day else text or ""
        assert read == wanted.replace("\0", "\ufffd"), value.sql
        is_number = is_day or (isinstance(value.cell, int | float) and abs(value.cell) < 10**15)
        assert (kind is None) == (is_number or value.cell is None or value.sql.startswith("0.1234")), value.sql
    (tmp_path / "v.parquet").write_bytes(await asked.file(TableFormat.PARQUET))
    [row] = duckdb.read_parquet(str(tmp_path / "v.parquet")).fetchall()
    for value, held, wanted in zip(asked.values, row, texts, strict=True):
        if isinstance(held, float):
            assert float(f"{held:.15g}") == float(wanted) or held == float(wanted) or wanted == "NaN", value.sql
        else:
            assert ("" if held is None else str(held)) == wanted, value.sql


def _as_moment(days: str, wanted: str) -> str:
    moment = datetime(1899, 12, 30) + timedelta(seconds=round(float(days) * 86_400))
    return str(moment.date()) if len(wanted) == 10 else moment.isoformat(wanted[10])


async def test_a_result_without_rows_has_its_columns(asked: Asked, ask: Any, tmp_path: Path) -> None:
    sql = "SELECT 1 AS a, NULL AS b, 'x' AS \"c d\" FROM t WHERE 1 = 0".replace(
        '"', "`" if asked.source.dialect == "mysql" else '"'
    )
    found = (await ask(asked.source, "run_sql", sql=sql))["data"]
    assert (found["columns"], found["rows"], found["total"]) == (["a", "b", "c d"], [], 0)
    assert (await asked.file(TableFormat.CSV, sql)).decode() == "\ufeffa,b,c d\r\n"
    assert [[text for _, text in row] for row in sheet(await asked.file(TableFormat.XLSX, sql))] == [["a", "b", "c d"]]
    (tmp_path / "e.parquet").write_bytes(await asked.file(TableFormat.PARQUET, sql))
    assert duckdb.read_parquet(str(tmp_path / "e.parquet")).columns == ["a", "b", "c d"]


_OF_A_COLUMN = {
    "sqlite": "SELECT column1 AS x FROM (VALUES (9007199254740993), (2), (NULL)) ORDER BY 1 DESC",
    "duckdb": "SELECT x FROM (VALUES (9007199254740993), (2), (NULL)) t(x) ORDER BY 1 DESC NULLS LAST",
    "postgresql": "SELECT x FROM (VALUES (9007199254740993), (2), (NULL)) t(x) ORDER BY 1 DESC NULLS LAST",
    "mysql": "SELECT 9007199254740993 AS x UNION SELECT 2 UNION SELECT NULL ORDER BY 1 DESC",
}


async def test_a_column_has_one_form(asked: Asked, ask: Any) -> None:
    sql = _OF_A_COLUMN[asked.source.dialect]
    found = (await ask(asked.source, "run_sql", sql=sql))["data"]
    assert found["rows"] == [["9007199254740993"], ["2"], [None]]
    assert [row[0] for row in sheet(await asked.file(TableFormat.XLSX, sql))[1:]] == [
        ("inlineStr", "9007199254740993"), ("inlineStr", "2"), (None, None)
    ]  # fmt: skip


async def test_a_csv_file_of_ours_is_read_back(asked: Asked, opened: Opened, ask: Any, tmp_path: Path) -> None:
    (tmp_path / "back.csv").write_bytes(await asked.file(TableFormat.CSV, "SELECT 1 AS id, '王芳' AS name, -1.5 AS n"))
    found = (await ask(await opened(tmp_path / "back.csv"), "run_sql", sql="SELECT id, name, n FROM back"))["data"]
    assert (found["columns"], found["rows"]) == (["id", "name", "n"], [[1, "王芳", -1.5]])
