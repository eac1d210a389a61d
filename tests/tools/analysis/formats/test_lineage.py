"""The formats of a query's columns, from those of a file's columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from longthread.tools.analysis.formats.column_format import ColumnFormat
from longthread.tools.analysis.formats.lineage import formats_of_query

EURO, DOLLAR, PERCENT = ColumnFormat("currency", "€"), ColumnFormat("currency", "$"), ColumnFormat("percent")
TABLES = {"sales": {"Price": EURO, "Tax": PERCENT}, "costs": {"cost": EURO, "freight": DOLLAR}}


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT price, city FROM sales", {"price": EURO}),
        ("SELECT * FROM sales", {"price": EURO, "tax": PERCENT}),
        ("SELECT s.* FROM sales s, costs", {"price": EURO, "tax": PERCENT}),
        ("SELECT city, SUM(s.price) AS Total FROM sales s GROUP BY city", {"Total": EURO}),
        ("SELECT ROUND(AVG(price), 2) AS mean, AVG(tax) AS t FROM sales", {"mean": EURO, "t": PERCENT}),
        ("SELECT COUNT(price) AS n, COUNT(*) AS m FROM sales", {}),
        (
            "SELECT SUM(price * n) AS t, SUM(price) / COUNT(*) AS a, 2 * price AS d FROM sales",
            dict.fromkeys("tad", EURO),
        ),
        ("SELECT price / cost AS ratio, n / price AS r, price * cost AS x FROM sales, costs", {}),
        ("SELECT price - cost AS profit, cost + freight AS mixed FROM sales, costs", {"profit": EURO}),
        (
            "SELECT COALESCE(SUM(price), 0) AS t, CASE WHEN a THEN price ELSE 0 END AS c FROM sales",
            dict.fromkeys("tc", EURO),
        ),
        ("SELECT CASE WHEN a THEN cost ELSE freight END AS c FROM costs", {}),
        ("WITH t AS (SELECT city, SUM(price) AS s FROM sales GROUP BY 1) SELECT MAX(s) AS m FROM t", {"m": EURO}),
        ("SELECT m FROM (SELECT price AS m FROM sales) x", {"m": EURO}),
        ("SELECT price FROM sales UNION ALL SELECT cost FROM costs", {"price": EURO}),
        ("SELECT price FROM sales UNION ALL SELECT freight FROM costs", {}),
        ("SELECT SUM(price) OVER (PARTITION BY city) AS s FROM sales", {"s": EURO}),
        ("SELECT (SELECT MAX(price) FROM sales) AS most", {"most": EURO}),
        ("SELECT price FROM sales a JOIN sales b ON a.id = b.id", {}),
        ("SELECT tax * 2 AS t FROM sales", {}),
        ("SELECT price FROM other", {}),
        ("SELECT upper(price) AS u FROM sales", {}),
    ],
)
def test_a_query_has_the_formats_of_what_it_reads(sql: str, wanted: dict[str, ColumnFormat]) -> None:
    assert formats_of_query(sqlglot.parse_one(sql, read="duckdb"), TABLES) == wanted


def test_a_deep_query_tells_nothing() -> None:
    deep: exp.Expr = exp.column("price")
    for _ in range(60):
        deep = exp.Abs(this=deep)
    assert formats_of_query(exp.select(deep.as_("p")).from_("sales"), TABLES) == {}


FILE = "city;price;tax;note;amount\nBonn;1.234,50 €;19 %;x;$5\nKöln;3,00 €;7 %;y;7 EUR\n"


async def test_an_observation_tells_the_formats_of_a_file(tmp_path: Path, opened: Any, ask: Any) -> None:
    (tmp_path / "sales.csv").write_text(FILE, "utf-8")
    source = await opened(tmp_path / "sales.csv")
    sql = "SELECT city, SUM(price) AS total, AVG(tax) AS tax, COUNT(*) AS n FROM sales GROUP BY city ORDER BY city"
    data = (await ask(source, "run_sql", sql=sql))["data"]
    assert data["rows"] == [["Bonn", 1234.5, 19.0, 1], ["Köln", 3.0, 7.0, 1]]
    assert data["formats"] == {"total": {"kind": "currency", "unit": "€"}, "tax": {"kind": "percent"}}
    assert (
        "formats"
        not in (await ask(source, "run_sql", sql="SELECT COUNT(*) AS n, amount FROM sales GROUP BY 2"))["data"]
    )
