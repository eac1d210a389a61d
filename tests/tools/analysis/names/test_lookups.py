"""A column that a table lacks is read from the table that its one key leads to, and from nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from tests.tools.analysis.names.test_missing import table

from longthread.errors import ColumnNotFound
from longthread.tools.analysis.guard import Guard
from longthread.tools.analysis.names.missing import apply_mends
from longthread.tools.analysis.names.resolver import Resolver
from longthread.tools.analysis.schema import Schema

SHOP = Schema(
    [
        table("categories", "id label", "id"),
        table("products", "id title price category_id", "id", category_id=("categories", "id")),
        table("orders", "id status placed_on", "id"),
        table("items", "order_id product_id quantity", order_id=("orders", "id"), product_id=("products", "id")),
        table("airports", "code city", "code"),
        table("flights", "id origin target", "id", origin=("airports", "code"), target=("airports", "code")),
        table("stores", "id manager opened", "id", manager=("people", "name")),
        table("people", "id name phone", "id"),
    ]
)
PRODUCTS = "(SELECT items.*, products.category_id FROM items LEFT JOIN products ON products.id = items.product_id)"
ORDERS = "(SELECT items.*, orders.status FROM items LEFT JOIN orders ON orders.id = items.order_id)"
READ = [
    (
        "SELECT c.label, SUM(i.quantity) FROM categories c JOIN items AS i ON c.id = i.category_id GROUP BY 1",
        f"SELECT c.label, SUM(i.quantity) FROM categories c JOIN {PRODUCTS} AS i ON c.id = i.category_id GROUP BY 1",
    ),
    (
        "SELECT status, COUNT(*) FROM items GROUP BY status",
        f"SELECT status, COUNT(*) FROM {ORDERS} AS items GROUP BY status",
    ),
    (
        "SELECT id FROM categories WHERE id NOT IN (SELECT category_id FROM items)",
        f"SELECT id FROM categories WHERE id NOT IN (SELECT category_id FROM {PRODUCTS} AS items)",
    ),
    (
        "SELECT SUM(i.price * i.quantity) FROM items i WHERE i.status = 'paid' AND i.title = 'x'",
        "SELECT SUM(i.price * i.quantity) FROM "
        "(SELECT items.*, products.price, orders.status, products.title FROM items "
        "LEFT JOIN products ON products.id = items.product_id "
        "LEFT JOIN orders ON orders.id = items.order_id) i WHERE i.status = 'paid' AND i.title = 'x'",
    ),
]
NOT_READ = [
    "SELECT f.city FROM flights f",  # two keys lead there
    "SELECT i.city FROM items i",  # no key does
    "SELECT o.quantity FROM orders o",  # many rows would be found
    "SELECT * FROM items WHERE status = 'paid'",  # one column more would be shown
    "SELECT i.* FROM items i WHERE i.status = 'paid'",
    "SELECT i.title FROM items i JOIN products p ON p.id = i.product_id AND i.price > 1",  # the query has the table
    "SELECT p.label, o.title FROM products p JOIN orders o ON p.id = o.id",  # the second is nowhere
    "SELECT i.label FROM items i",  # two keys away
    "SELECT quantity FROM items NATURAL JOIN products WHERE status = 'paid'",
    "SELECT quantity FROM items JOIN products USING (product_id) WHERE status = 'paid'",
    "SELECT s.phone FROM stores s",  # nothing says that a name is one person's
    "SELECT o.placed FROM orders o",
]


def mend(sql: str, dialect: str = "sqlite", **options: bool) -> str:
    judged = Guard(dialect).judge(sql)
    return apply_mends(judged.text, Resolver(SHOP, dialect).mends(judged.tree, **options))


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql", "duckdb", "mysql"])
@pytest.mark.parametrize(("sql", "mended"), READ)
def test_a_column_is_read_by_the_key(dialect: str, sql: str, mended: str) -> None:
    assert mend(sql, dialect) == mended
    assert mend(mended, dialect) == mended
    with pytest.raises(ColumnNotFound):
        mend(sql, dialect, keys=False)


@pytest.mark.parametrize("sql", NOT_READ)
def test_what_may_be_another_column_is_refused(sql: str) -> None:
    with pytest.raises(ColumnNotFound):
        mend(sql)


@pytest.mark.parametrize("more", ["", "CREATE TABLE old_orders (status TEXT);"])
async def test_no_row_is_lost_or_counted_twice(opened: Any, make_sqlite: Any, ask: Any, more: str) -> None:
    source = await opened(
        make_sqlite(
            "CREATE TABLE orders (order_no INTEGER, status TEXT);"
            f"CREATE TABLE items (order_no INTEGER, quantity INTEGER);{more}",
            orders=[(1, "paid"), (2, "open"), (3, "paid")],
            items=[(1, 5), (1, 7), (2, 11), (None, 13)],
        )
    )
    await source.values(await source.schema())  # the prompt shows the key
    observed = await ask(source, "run_sql", sql="SELECT status, SUM(quantity) AS n FROM items GROUP BY 1 ORDER BY 2")
    if more:  # another table has such a column
        assert observed["error"]["type"] == "unknown_column"
        return
    assert observed["data"]["rows"] == [["open", 11], ["paid", 12], [None, 13]]
    assert "items has no status: it was read as orders.status, by order_no." in observed["data"]["notes"]
