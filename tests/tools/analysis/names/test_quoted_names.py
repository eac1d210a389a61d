"""A misspelt name in quotes is never a text, and a text in double quotes is told with its fix."""

from __future__ import annotations

import pytest

from longthread.errors import ColumnNotFound
from longthread.tools.analysis.guard import Guard
from longthread.tools.analysis.resolver import Resolver
from longthread.tools.analysis.schema import Column, Schema, Table


def check(sql: str, dialect: str) -> None:
    columns = tuple(Column(name, "TEXT", True, False, None) for name in ("Order Status", "country", "n"))
    tables = [Table(name, f'"{name}"', "table", None, columns, (), (), None) for name in ("orders", "paid_orders")]
    Resolver(Schema(tables), dialect).check(Guard(dialect).judge(sql).tree)


@pytest.mark.parametrize(
    "sql",
    [
        """SELECT count(*) FROM orders WHERE "Order Stat" = 'paid'""",
        """SELECT "Order Stat" FROM orders""",
        """SELECT o."countr" FROM orders o""",
        """SELECT n FROM orders ORDER BY "Order Stat" """,
        """SELECT count(*) FROM orders GROUP BY "contry" """,
        """SELECT sum("m") FROM orders""",
        """SELECT "contry" AS contry, count(*) FROM orders GROUP BY contry""",
        """SELECT coalesce("contry", '-') AS "contry" FROM orders ORDER BY "contry" """,
        """SELECT count(*) AS "all", "all" FROM orders""",
        """SELECT * FROM (SELECT n FROM orders WHERE "contry" = 'x') t""",
        """WITH t AS (SELECT n FROM orders) SELECT "country" FROM t""",
        """SELECT 1 FROM orders a JOIN orders b ON a.n = "b.n" """,
        """SELECT count(*) FROM orders WHERE country = "UK" """,
        """SELECT count(*) FROM orders WHERE country IN ("UK", "FR")""",
        """SELECT count(*) FROM orders GROUP BY n HAVING max("m") > 1""",
        """SELECT "orders" FROM orders""",
        """SELECT count(*) FROM orders, json_each('[1]') WHERE "contry" = 1""",
        """SELECT n FROM orders WHERE n = (SELECT max(n) FROM orders WHERE "国家" = '中国')""",
    ],
)
def test_in_sqlite(sql: str) -> None:
    with pytest.raises(ColumnNotFound):
        check(sql, "sqlite")


def test_the_fix_is_told() -> None:
    with pytest.raises(ColumnNotFound, match="nearest columns are: Order Status.*in single quotes"):
        check("""SELECT count(*) FROM orders WHERE "Order Stat" = 'paid'""", "sqlite")
    with pytest.raises(ColumnNotFound, match="in single quotes"):
        check("""SELECT count(*) FROM orders WHERE country = "UK" """, "sqlite")
    with pytest.raises(ColumnNotFound, match="in backticks"):
        check("""SELECT count(*) FROM orders WHERE "Order Status" = 'paid'""", "mysql")


@pytest.mark.parametrize(
    "sql",
    [
        """SELECT "Order Status", "country" AS "my land" FROM "orders" ORDER BY "my land" """,
        """SELECT "o"."Order Status" FROM orders AS "o" GROUP BY "Order Status" """,
        """SELECT "rowid", "value" FROM orders, json_each('[1]')""",
        """WITH "t t" AS (SELECT n AS "N n" FROM orders) SELECT "N n" FROM "t t" """,
        """SELECT (SELECT "country" FROM paid_orders p WHERE p.n = o."n") FROM orders o""",
        """SELECT count(*) FROM paid_orders WHERE "paid_orders" MATCH 'x'""",
    ],
)
def test_names_that_are_there_are_let_through(sql: str) -> None:
    check(sql, "sqlite")


@pytest.mark.parametrize(
    "sql",
    [
        """SELECT count(*) FROM orders WHERE "Order Status" = 'paid'""",
        """SELECT count(*) FROM orders WHERE "Order Stat" IN ('paid', 'open')""",
        """SELECT count(*) FROM orders WHERE "country" LIKE 'U%'""",
        """SELECT "country" FROM orders""",
        """SELECT country FROM orders ORDER BY "Order Stat" """,
        """SELECT count(*) FROM orders GROUP BY "country" """,
        """SELECT sum("n") FROM orders""",
        """SELECT * FROM (SELECT n FROM orders WHERE "contry" = 'x') t""",
    ],
)
def test_in_mysql(sql: str) -> None:
    with pytest.raises(ColumnNotFound, match="in backticks"):
        check(sql, "mysql")


@pytest.mark.parametrize(
    "sql",
    [
        """SELECT count(*) FROM orders WHERE country = "UK" AND "FR" = country""",
        """SELECT "all" AS kind, count(*) FROM orders WHERE country IN ("UK", 'FR') AND country LIKE "U%" """,
        """SELECT DATE_FORMAT(country, "%Y") AS y, GROUP_CONCAT(country SEPARATOR ", ") FROM orders GROUP BY y""",
        """SELECT IF(country = "UK", "yes", "no") FROM orders ORDER BY `Order Status`""",
    ],
)
def test_texts_in_double_quotes_are_texts_in_mysql(sql: str) -> None:
    check(sql, "mysql")
