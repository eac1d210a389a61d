"""The formats of a query's columns, from those of a file's columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from longthread.tools.analysis.column_format import ColumnFormat
from longthread.tools.analysis.format_lineage import formats_of_query

EURO, DOLLAR, PERCENT = ColumnFormat("currency", "€"), ColumnFormat("currency", "$"), ColumnFormat("percent")
KILO = ColumnFormat("unit", "kg")
CENTS, WHOLE = ColumnFormat("currency", "€", 2), ColumnFormat("currency", "€", 0)
PIECES, YEAR, DAY = ColumnFormat("unit", "pcs", 0), ColumnFormat("plain", places=0), ColumnFormat("date")
TABLES = {
    "sales": {"Price": EURO, "Tax": PERCENT},
    "costs": {"cost": EURO, "freight": DOLLAR},
    "orders": {"amount": EURO, "w": KILO, "amount_usd": DOLLAR},
    "us": {"amount": DOLLAR},
    "stock": {"qty": PIECES, "sold_qty": PIECES, "budget_qty": ColumnFormat("unit", "h", 1)},
    "book": {"price": CENTS, "fee": WHOLE, "qty": PIECES, "n": YEAR, "year": YEAR, "day": DAY, "due": DAY},
}


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
        ("SELECT amount * fx_rate AS a, amount / fx AS b, w * price AS revenue, fx * amount AS c FROM orders", {}),
        ("SELECT amount * 2 AS amount_usd, SUM(amount) / 10 AS millions, amount AS 万元 FROM orders", {}),
        ("SELECT amount * n AS totalUsd, SUM(amount) AS k, SUM(amount) AS amount_k, amount AS in_eur FROM orders", {}),
        (
            "SELECT SUM(amount) / 1e6 AS a, amount / 1000 AS b, amount * 0.001 AS c, amount / (2000) AS d FROM orders",
            {},
        ),
        ("SELECT amount * order_number AS a, amount * discount AS b, amount * account AS c FROM orders", {}),
        (
            "SELECT amount * qty AS a, SUM(amount) / NULLIF(COUNT(*), 0) AS b, amount * 1.19 AS c, amount / 12 AS d,"
            " SUM(o.amount) / SUM(o.item_count) AS e, amount * 数量 AS f, number_of_pieces * amount AS g, qty * w AS h,"
            " -amount / (-2) AS i, amount + 1 AS j FROM orders o",
            {**dict.fromkeys("abcdefgij", EURO), "h": KILO},
        ),
        ("SELECT amount + fee AS a, amount - COUNT(*) AS b, amount + random() AS c FROM orders", {}),
        ("SELECT MAX(tax) AS tax_percent, price * 100 AS cents FROM sales", {"tax_percent": PERCENT}),
        ("SELECT amount_usd FROM orders", {"amount_usd": DOLLAR}),
        ("SELECT SUM(amount_usd) AS amount_usd FROM orders", {"amount_usd": DOLLAR}),
        ("SELECT o.amount, u.amount FROM orders o JOIN us u USING (id)", {}),
        ("SELECT o.amount, u.amount AS Amount, o.w FROM orders o JOIN us u USING (id)", {"w": KILO}),
        ("SELECT * FROM orders o JOIN us u USING (id)", {}),
        ("SELECT * FROM orders JOIN p USING (id)", {}),
        ("SELECT o.*, p.* FROM orders o, p", {}),
        ("SELECT * FROM orders, UNNEST([1]) AS p(amount)", {}),
        ("SELECT *, upper(x) AS price FROM sales", {"tax": PERCENT}),
        ("SELECT * EXCLUDE (price), price / 2 AS price FROM sales", {"price": EURO, "tax": PERCENT}),
        ("SELECT * REPLACE (price * fx AS price) FROM sales", {"tax": PERCENT}),
        ("SELECT * RENAME (price AS tax, tax AS price) FROM sales", {}),
        ("WITH t(amount, qty) AS (SELECT qty, amount FROM orders) SELECT amount, qty FROM t", {}),
        ("WITH us(amount) AS (SELECT 1) SELECT amount FROM us", {}),
        ("SELECT amount FROM (SELECT qty, amount FROM orders) AS t(amount, qty)", {}),
        ("SELECT amount FROM orders AS o(qty, amount)", {}),
        ("SELECT CAST(amount AS bool) AS a, TRY_CAST(amount AS boolean) AS b, -amount::bool AS c FROM orders", {}),
        ("SELECT CAST(amount AS double) AS a FROM orders", {"a": EURO}),
        ("SELECT * FROM us UNION ALL SELECT freight FROM costs", {}),
        ("SELECT * FROM orders UNION ALL SELECT * FROM orders", {"amount": EURO, "w": KILO, "amount_usd": DOLLAR}),
        ("SELECT SUM(fee) AS a, MAX(fee) AS b, ABS(fee) AS c FROM book", dict.fromkeys("abc", WHOLE)),
        (
            "SELECT AVG(fee) AS a, ROUND(fee / 3, 1) AS b, CAST(fee AS double) AS c FROM book",
            dict.fromkeys("abc", EURO),
        ),
        (
            "SELECT price + fee AS a, COALESCE(price, fee) AS b, price - price AS c FROM book",
            {**dict.fromkeys("ab", EURO), "c": CENTS},
        ),
        (
            "SELECT price * qty AS a, SUM(n * price) AS b, price / qty AS c, price * year AS d FROM book",
            dict.fromkeys("abc", EURO),
        ),
        ("SELECT year, MAX(year) AS b, SUM(year) AS c, AVG(year) AS d FROM book", {"year": YEAR, "b": YEAR}),
        (
            "SELECT day, MIN(day) AS b, day - due AS c, day + 1 AS d, CAST(day AS text) AS e FROM book",
            {"day": DAY, "b": DAY},
        ),
        (
            "SELECT qty / sold_qty AS a, qty * 1.0 / sold_qty AS b, qty * qty AS c,"
            " SUM(qty) * 1.0 / SUM(sold_qty) AS d, budget_qty / qty AS e,"
            " (qty - sold_qty) * 100.0 / qty AS f, qty / COUNT(*) AS g FROM stock",
            {"g": ColumnFormat("unit", "pcs")},
        ),
        ("SELECT sold / got AS a FROM (SELECT qty AS sold, sold_qty AS got FROM stock)", {}),
        (
            "SELECT fee + 0.45 AS a, fee - 0.01 AS b, fee + 1 AS c, year - 0.5 AS d, year - 1 AS e, fee + 2.0 AS f"
            " FROM book",
            {"a": EURO, "b": EURO, "c": WHOLE, "d": ColumnFormat("plain"), "e": YEAR, "f": WHOLE},
        ),
        (
            "SELECT COALESCE(fee, 0.5) AS a, CASE WHEN x THEN fee ELSE 0.25 END AS b, IF(x, -0.5, fee) AS c,"
            " COALESCE(fee, 0) AS d, CASE WHEN x THEN -1 ELSE fee END AS e FROM book",
            {**dict.fromkeys("abc", EURO), **dict.fromkeys("de", WHOLE)},
        ),
        ("SELECT price, n, price FROM sales UNION ALL SELECT n, n, price FROM sales", {}),
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
