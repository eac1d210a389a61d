"""A date function of another engine is written as this one has it, with a note; what is not certain stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.engines import ENGINES, made_database

from longthread.tools.analysis.names.date_functions import mend_date_functions

WRITTEN = [
    ("sqlite", "SELECT YEAR(o.d) FROM o", "SELECT CAST(strftime('%Y', o.d) AS INTEGER) FROM o"),
    ("sqlite", "SELECT extract(month from d) FROM o", "SELECT CAST(strftime('%m', d) AS INTEGER) FROM o"),
    ("sqlite", "SELECT DATE_FORMAT(max(a, d), '%Y-%m') FROM o", "SELECT strftime('%Y-%m', max(a, d)) FROM o"),
    ("sqlite", "SELECT to_char(d, 'YYYY-MM-DD') FROM o", "SELECT strftime('%Y-%m-%d', d) FROM o"),
    ("sqlite", "SELECT DATE_TRUNC('month', d) FROM o", "SELECT strftime('%Y-%m-01', d) FROM o"),
    ("sqlite", "SELECT DAY(CURDATE()), now()", "SELECT CAST(strftime('%d', date('now')) AS INTEGER), datetime('now')"),
    ("duckdb", "SELECT strftime('%Y', d), YEAR(d) FROM o", "SELECT strftime(d, '%Y'), YEAR(d) FROM o"),
    ("postgresql", "SELECT MONTH(d) FROM o", "SELECT CAST(EXTRACT(MONTH FROM d) AS INTEGER) FROM o"),
    ("postgresql", "SELECT strftime('%Y-%m', d) FROM o", "SELECT to_char(d, 'YYYY-MM') FROM o"),
    ("mysql", "SELECT strftime('%Y', d), YEAR(d) FROM o", "SELECT DATE_FORMAT(d, '%Y'), YEAR(d) FROM o"),
]
KEPT = [
    ("sqlite", "SELECT strftime('%Y', d), date('now'), 'YEAR(d)', year FROM o -- YEAR(d)"),
    ("sqlite", "SELECT DATE_FORMAT(d, '%i %M') FROM o"),
    ("sqlite", "SELECT EXTRACT(EPOCH FROM d), x.YEAR(d), YEAR(d, 1) FROM o"),
    ("sqlite", "SELECT DATE_FORMAT(d, form), DATE_TRUNC('week', d) FROM o"),
    ("sqlite", "SELECT YEAR(d"),
    ("duckdb", "SELECT strftime(d, '%Y'), date_trunc('month', d), now() FROM o"),
    ("postgresql", "SELECT EXTRACT(YEAR FROM d), to_char(d, 'YYYY'), date_trunc('month', d) FROM o"),
    ("mssql", "SELECT strftime('%Y', d) FROM o"),
]


@pytest.mark.parametrize(("dialect", "sql", "written"), WRITTEN)
def test_it_is_written_as_the_engine_has_it(dialect: str, sql: str, written: str) -> None:
    text, notes = mend_date_functions(sql, dialect, frozenset())
    assert text == written
    assert len(notes) == (3 if "CURDATE" in sql else 1)
    assert all(" has no " in note and "it was written as" in note for note in notes)


@pytest.mark.parametrize(("dialect", "sql"), KEPT)
def test_what_the_engine_has_or_what_is_not_certain_stays(dialect: str, sql: str) -> None:
    assert mend_date_functions(sql, dialect, frozenset()) == (sql, [])


def test_a_function_that_the_database_defines_is_its_own() -> None:
    sql = "SELECT year(d) FROM o"
    assert mend_date_functions(sql, "postgresql", {"year"}) == (sql, [])


@pytest.fixture(params=ENGINES)
def orders(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Three orders of two years, on each engine."""
    script = "CREATE TABLE o (d DATE); INSERT INTO o VALUES ('2023-01-31'), ('2023-02-01'), ('2024-02-29');"
    return made_database(request, script, tmp_path)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT YEAR(d) AS y, count(*) FROM o WHERE MONTH(d) < 3 GROUP BY YEAR(d) ORDER BY 1", [[2023, 2], [2024, 1]]),
        ("SELECT count(*) FROM o WHERE strftime('%Y', d) = '2023'", [[2]]),
        ("SELECT DISTINCT DATE_FORMAT(d, '%Y-%m') AS m FROM o ORDER BY 1", [["2023-01"], ["2023-02"], ["2024-02"]]),
    ],
)
async def test_it_gives_the_same_on_each_engine(
    opened: Any, orders: str, ask: Any, sql: str, rows: list[list[Any]]
) -> None:
    observed = await ask(await opened(orders), "run_sql", sql=sql)
    assert observed["data"]["rows"] == rows, observed
    shown = observed["data"]["sql"]
    assert (shown == sql) == (not any("it was written as" in note for note in observed["data"]["notes"]))
