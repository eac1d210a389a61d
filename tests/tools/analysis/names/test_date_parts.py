"""A part of a date in another engine's form is written as this one has it, with a note; what is not certain stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.engines import ENGINES, made_database

from longthread.tools.analysis.guard import Guard
from longthread.tools.analysis.missing_names import apply_mends, mend_date_parts
from longthread.tools.analysis.schema import Column, Schema, Table

SCHEMA = Schema([Table("o", '"o"', columns=(Column("d", "DATE"), Column("t", "TEXT"), Column("n", "INTEGER")))])
WRITTEN = [
    ("sqlite", "SELECT YEAR(o.d) FROM o", "SELECT CAST(strftime('%Y', o.d) AS INTEGER) FROM o"),
    ("sqlite", "SELECT year ( t ) FROM o", "SELECT CAST(strftime('%Y', t) AS INTEGER) FROM o"),
    ("sqlite", 'SELECT extract(month from "d") FROM o', "SELECT CAST(strftime('%m', \"d\") AS INTEGER) FROM o"),
    ("sqlite", "SELECT n FROM o WHERE DAY(d) = 1", "SELECT n FROM o WHERE CAST(strftime('%d', d) AS INTEGER) = 1"),
    ("postgresql", "SELECT MONTH(d) FROM o", "SELECT CAST(EXTRACT(MONTH FROM d) AS INTEGER) FROM o"),
]
KEPT = [
    ("sqlite", "SELECT strftime('%Y', d), date('now'), 'YEAR(d)' FROM o -- YEAR(d)"),
    ("sqlite", "SELECT YEAR(n) FROM o"),
    ("sqlite", "SELECT YEAR(date('now')), YEAR(max(d)), YEAR('2024-01-01') FROM o"),
    ("sqlite", "SELECT n AS d FROM o ORDER BY YEAR(d)"),
    ("sqlite", "SELECT YEAR(d) FROM (SELECT n AS d FROM o)"),
    (
        "sqlite",
        "WITH RECURSIVE month(d) AS (SELECT 1 UNION ALL SELECT d + 1 FROM month) SELECT d FROM month",
    ),
    ("postgresql", "SELECT EXTRACT(YEAR FROM d), YEAR(t) FROM o"),
    ("postgresql", "SELECT d FROM generate_series(1, 3) AS day(d)"),
    ("duckdb", "SELECT YEAR(d) FROM o"),
    ("mysql", "SELECT YEAR(d) FROM o"),
]


@pytest.mark.parametrize(("dialect", "sql", "written"), WRITTEN)
def test_it_is_written_as_the_engine_has_it(dialect: str, sql: str, written: str) -> None:
    judged = Guard(dialect).judge(sql)
    mends = mend_date_parts(judged.tree, judged.text, SCHEMA, dialect)
    assert apply_mends(judged.text, mends) == written
    assert len({mend.note for mend in mends}) == 1
    assert " has no " in mends[0].note and "it was written as" in mends[0].note


@pytest.mark.parametrize(("dialect", "sql"), KEPT)
def test_what_the_engine_has_or_what_is_not_certain_stays(dialect: str, sql: str) -> None:
    judged = Guard(dialect).judge(sql)
    assert mend_date_parts(judged.tree, judged.text, SCHEMA, dialect) == []


@pytest.fixture(params=ENGINES)
def orders(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Three orders of two years, on each engine."""
    script = "CREATE TABLE o (d DATE); INSERT INTO o VALUES ('2023-01-31'), ('2023-02-01'), ('2024-02-29');"
    return made_database(request, script, tmp_path)


@pytest.mark.parametrize("year", ["YEAR(d)", "EXTRACT(YEAR FROM d)", "year(o.d)"])
async def test_it_gives_the_same_on_each_engine(opened: Any, orders: str, ask: Any, year: str) -> None:
    source = await opened(orders)
    sql = f"SELECT {year} AS y, count(*) FROM o WHERE MONTH(d) < 3 GROUP BY {year} ORDER BY 1"
    observed = await ask(source, "run_sql", sql=sql)
    assert [[int(y), n] for y, n in observed["data"]["rows"]] == [[2023, 2], [2024, 1]], observed
    assert any("it was written as" in note for note in observed["data"]["notes"]) == (
        source.dialect in ("sqlite", "postgresql")
    )


async def test_a_text_compares_as_a_number_does(opened: Any, make_sqlite: Any, ask: Any) -> None:
    source = await opened(make_sqlite("CREATE TABLE o (d TEXT); INSERT INTO o VALUES ('2023-05-01'), ('2024-05-01')"))
    for condition in ("YEAR(d) = 2023", "YEAR(d) = '2023'", "YEAR(d) IN (2022, 2023)", "YEAR(d) < 2024"):
        observed = await ask(source, "run_sql", sql=f"SELECT count(*) FROM o WHERE {condition}")
        assert observed["data"]["rows"] == [[1]], observed
