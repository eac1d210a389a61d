"""Unknown names are refused before anything runs, and no statement that runs is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlglot import exp

from longthread.errors import ColumnNotFound, SqlRefused, TableNotFound
from longthread.tools.analysis.guard import Guard
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.resolver import Resolver
from longthread.tools.analysis.schema import Column, Schema, Table
from longthread_evals.statements import read_statements

EVERYDAY = Path(__file__).parents[4] / "evals" / "sql"
SHOP = Schema(
    Table(label, f'"{label}"', columns=tuple(Column(name, "TEXT") for name in names.split()))
    for label, names in {
        "customers": "id name email country",
        "orders": "id customer_id total status",
        "Items": "Id orderId quantity",
        "sales.refunds": "id order_id amount",
        "客户": "编号 姓名",
    }.items()
)

RUNS = [
    ("sqlite", "SELECT Name, CUSTOMERS.Country FROM customers"),
    ("sqlite", "SELECT rowid, c.oid FROM customers c"),
    ("sqlite", "SELECT total AS t FROM orders WHERE t > 1 GROUP BY t HAVING t > 2 ORDER BY t"),
    ("sqlite", "WITH b AS (SELECT x FROM a), a AS (SELECT id AS x FROM orders) SELECT x FROM b"),
    ("sqlite", "SELECT value FROM json_each('[1]')"),
    ("sqlite", "SELECT c.name, j.key FROM customers c, json_each(c.email) j"),
    ("sqlite", "SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders WHERE customer_id = c.id AND country)"),
    ("sqlite", "SELECT n + 1 FROM (SELECT count(*) AS n FROM orders)"),
    ("sqlite", "WITH t(a, b) AS (SELECT id, total FROM orders) SELECT a, b FROM t"),
    ("sqlite", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"),
    ("sqlite", "SELECT 姓名 FROM 客户 UNION SELECT name FROM customers ORDER BY 姓名"),
    ("sqlite", "SELECT * FROM sqlite_master"),
    ("sqlite", "SELECT * FROM customers_content"),
    ("sqlite", "SELECT count(*) FROM orders o JOIN customers c USING (id)"),
    ("postgresql", 'SELECT "orderId", id FROM "Items", orders'),
    ("postgresql", "SELECT o, (o).total, o.ctid FROM orders o"),
    ("postgresql", "SELECT x.count FROM (SELECT count(*) FROM orders) x"),
    ("postgresql", "SELECT id FROM a_partition_that_is_not_listed"),
    ("postgresql", "SELECT amount FROM sales.refunds"),
    ("postgresql", "SELECT d FROM generate_series(1, 2) AS d, LATERAL (SELECT d + 1 AS e) l WHERE e > 1"),
    ("postgresql", "SELECT n, o FROM unnest(ARRAY['a']) WITH ORDINALITY AS t(n, o)"),
    ("duckdb", "SELECT list_transform([1], lambda x : x + 1), [y * 2 FOR y IN [1]] FROM orders"),
    ("duckdb", "SELECT s.field FROM (SELECT {'field': 1} AS s)"),
    ("duckdb", "FROM orders SELECT * EXCLUDE (id) ORDER BY total"),
    ("duckdb", "PIVOT orders ON status USING sum(total)"),
    ("duckdb", "SELECT o.total.x FROM orders o"),
    ("mysql", "SELECT Name, CUSTOMERS.Country, customers._rowid FROM customers"),
    ("mysql", "SELECT total AS t FROM orders GROUP BY t HAVING t > 2"),
    ("mysql", "SELECT 1 FROM dual"),
    ("mysql", "SELECT table_name FROM information_schema.tables"),
    ("mysql", "SELECT jt.a FROM JSON_TABLE('[1]', '$[*]' COLUMNS (a INT PATH '$')) AS jt"),
]  # fmt: skip

UNKNOWN = [
    ("sqlite", "SELECT nam FROM customers", "name (of customers)"),
    ("sqlite", "SELECT c.totl FROM customers c JOIN orders o ON o.customer_id = c.id", "c has id, name"),
    ("sqlite", "SELECT o.totl FROM customers c JOIN orders o ON o.customer_id = c.id", "total (of o)"),
    ("sqlite", "SELECT o.id FROM orders o WHERE o.staus = 'x'", "status (of o)"),
    ("sqlite", "SELECT id FROM orders GROUP BY customerid", "customer_id (of orders)"),
    ("sqlite", "SELECT x.name FROM customers c", "The query reads: c."),
    ("sqlite", "SELECT b.missing FROM (SELECT id, total FROM orders) b", "b has id, total"),
    ("sqlite", "WITH b AS (SELECT id FROM orders) SELECT total FROM b", "b has id"),
    ("sqlite", "WITH t(a, b) AS (SELECT id, total FROM orders) SELECT total FROM t", "total"),
    ("sqlite", "SELECT name FROM customers WHERE id IN (SELECT custmer_id FROM orders)", "customer_id (of orders)"),
    ("sqlite", "SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders WHERE id = c.idd)", "id (of c)"),
    ("sqlite", "SELECT 姓 FROM 客户", "姓名"),
    ("sqlite", "SELECT nothing", "no FROM"),
    ("sqlite", "SELECT id FROM orders UNION SELECT staus FROM orders", "status"),
    ("sqlite", "SELECT sum(totals) OVER (PARTITION BY status) FROM orders", "total (of orders)"),
    ("duckdb", "SELECT totals FROM orders QUALIFY row_number() OVER (ORDER BY id) = 1", "total (of orders)"),
    ("duckdb", "SELECT o.totals FROM orders o", "total (of o)"),
    ("postgresql", "SELECT orderId FROM \"Items\"", "orderId (of Items)"),
    ("postgresql", "SELECT o.customerid FROM orders o", "customer_id (of o)"),
    ("mysql", "SELECT o.customerid FROM orders o", "customer_id (of o)"),
    ("mysql", "SELECT 姓 FROM 客户", "姓名"),
    ("mysql", "SELECT c.id FROM orders o", "The query reads: o."),
]  # fmt: skip

MISSING = [
    ("sqlite", "SELECT 1 FROM customer", "customers"),
    ("sqlite", "SELECT 1 FROM orders WHERE id IN (SELECT id FROM order_item)", "order"),
    ("duckdb", "WITH a AS (SELECT 1) SELECT * FROM a, ordrs", "orders"),
    ("mysql", "WITH a AS (SELECT 1) SELECT * FROM a, ordrs", "orders"),
]


def check(dialect: str, sql: str, schema: Schema = SHOP) -> None:
    Resolver(schema, dialect).check(Guard(dialect).judge(sql).tree)


@pytest.mark.parametrize(("dialect", "sql"), RUNS)
def test_what_may_run_is_let_through(dialect: str, sql: str) -> None:
    check(dialect, sql)


@pytest.mark.parametrize(("dialect", "sql", "near"), UNKNOWN)
def test_an_unknown_column_is_refused_with_the_nearest(dialect: str, sql: str, near: str) -> None:
    with pytest.raises(ColumnNotFound) as refused:
        check(dialect, sql)
    assert near in str(refused.value)


@pytest.mark.parametrize(("dialect", "sql", "near"), MISSING)
def test_an_unknown_table_is_refused_with_the_nearest(dialect: str, sql: str, near: str) -> None:
    with pytest.raises(TableNotFound) as refused:
        check(dialect, sql)
    assert near in str(refused.value)


async def _gold(shared_data: Path) -> list[tuple[str, Schema]]:
    schemas: dict[str, Schema] = {}
    found = []
    for line in (shared_data / "defog" / "gold.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["db"] not in schemas:
            file = shared_data / "defog" / f"{row['db']}.sqlite"
            async with await open_source(str(file), limits=Limits(isolated=False)) as source:
                schemas[row["db"]] = await source.schema()
        found += [(sql, schemas[row["db"]]) for sql in row["sql"]]
    return found


@pytest.mark.parametrize("sql", ["SELECT 1" + " UNION SELECT 1" * 1200, "SELECT id: : int , : : text FROM orders"])
def test_what_cannot_be_looked_up_is_refused(sql: str) -> None:
    with pytest.raises(SqlRefused):
        Resolver(SHOP, "duckdb").check(Guard("duckdb").judge(sql).tree)


async def test_gold_is_let_through_and_misspelled_gold_is_not(shared_data: Path) -> None:
    found = missed = 0
    for sql, schema in await _gold(shared_data):
        tree = Guard("sqlite").judge(sql).tree
        Resolver(schema, "sqlite").check(tree)
        for place, column in enumerate(list(tree.find_all(exp.Column))):
            if not isinstance(column.this, exp.Identifier) or column.this.args.get("quoted"):
                continue
            changed = tree.copy()
            list(changed.find_all(exp.Column))[place].this.set("this", f"{column.name}_typo")
            try:
                Resolver(schema, "sqlite").check(changed)
            except ColumnNotFound:
                found += 1
            else:
                missed += 1
    assert found > 1_000
    assert missed < 0.05 * found


def test_everyday_statements_name_no_unknown_column() -> None:
    """All of them run on the real engines; the schema is read from its own text here."""
    tables = []
    for line in (EVERYDAY / "schema.sql").read_text("utf-8").splitlines():
        tree: Any = exp.maybe_parse(line.rstrip(";"), dialect="postgres")
        if isinstance(tree, exp.Create):
            names = tuple(Column(column.name, "TEXT") for column in tree.find_all(exp.ColumnDef))
            tables.append(Table(tree.this.this.name, tree.this.this.sql(), columns=names))
    for one in read_statements(EVERYDAY / "benign.jsonl"):
        if "USING <" not in one.sql:
            check(str(one.dialect), one.sql, Schema(tables))


async def test_run_sql_says_it_before_anything_runs(opened: Any, make_sqlite: Any, ask: Any) -> None:
    source = await opened(make_sqlite("CREATE TABLE orders (id INTEGER, total REAL)"))
    found = await ask(source, "run_sql", sql="SELECT totl FROM orders")
    assert found["error"] == {
        "type": "unknown_column",
        "message": "There is no column totl. The nearest columns are: total (of orders). Send the corrected SQL.",
    }
