"""An unknown column is explained by the place where it is, and mended where that is certain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.engines import ENGINES, made_database

from longthread.errors import ColumnNotFound, TableNotFound
from longthread.tools.analysis.guard import Guard
from longthread.tools.analysis.missing_names import apply_mends
from longthread.tools.analysis.quoting import quote_identifier
from longthread.tools.analysis.resolver import Resolver
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table


def table(label: str, names: str, primary: str = "", **keys: tuple[str, str]) -> Table:
    """A table; a key is `column=(table, column it refers to)`."""
    foreign = tuple(ForeignKey((own,), other, (its,)) for own, (other, its) in keys.items())
    columns = tuple(Column(name, "TEXT") for name in names.split())
    return Table(label, f'"{label}"', columns=columns, primary_key=(primary,) if primary else (), foreign_keys=foreign)


FOOD = Schema(
    [
        table("restaurant", "id name food_type city_name rating", "id"),
        table("location", "restaurant_id house street_name city_name", restaurant_id=("restaurant", "id")),
        table("geographic", "city_name county region", "city_name"),
        table("sales", "sale_id sale_price rep_id"),
        table("reps", "rep_id first_name"),
        table("客户", "编号 姓名"),
    ]
)
SHOP = Schema(
    [
        table("customers", "id name email", "id"),
        table("products", "id name price", "id"),
        table(
            "orders", "id customer_id product_id total", customer_id=("customers", "id"), product_id=("products", "id")
        ),
    ]
)
JOINED = "restaurant AS T1 JOIN location AS T2 ON T1.id = T2.restaurant_id"

MENDED = [
    (f"SELECT T1.street_name FROM {JOINED}", f"SELECT T2.street_name FROM {JOINED}"),
    (
        f"SELECT count(T2.rating) FROM {JOINED} WHERE T1.street_name = 'x' AND T2.rating > 3",
        f"SELECT count(T1.rating) FROM {JOINED} WHERE T2.street_name = 'x' AND T1.rating > 3",
    ),
    ("SELECT restaurant.name FROM restaurant AS r", "SELECT r.name FROM restaurant AS r"),
    ("SELECT x.name FROM restaurant", "SELECT restaurant.name FROM restaurant"),
    ("SELECT k.姓名 FROM 客户 AS c WHERE '中文' = k.编号", "SELECT c.姓名 FROM 客户 AS c WHERE '中文' = c.编号"),
    (
        "SELECT r.name FROM restaurant r WHERE EXISTS (SELECT 1 FROM location l WHERE r.street_name = 'x')",
        "SELECT r.name FROM restaurant r WHERE EXISTS (SELECT 1 FROM location l WHERE l.street_name = 'x')",
    ),
    (
        "WITH best AS (SELECT id, rating AS score FROM restaurant) SELECT l.score FROM best b, location l",
        "WITH best AS (SELECT id, rating AS score FROM restaurant) SELECT b.score FROM best b, location l",
    ),
]
KEYS = [
    (
        "SELECT 1 FROM restaurant r LEFT JOIN location AS l ON l.restaurant_id = r.restaurant_id AND l.house > 3",
        "SELECT 1 FROM restaurant r LEFT JOIN location AS l ON l.restaurant_id = r.id AND l.house > 3",
    ),
    (
        "SELECT l.house FROM location l JOIN restaurant r ON l.id = r.id",
        "SELECT l.house FROM location l JOIN restaurant r ON l.restaurant_id = r.id",
    ),
]
"""A join that names the other table's column in both."""
FLIGHTS = Schema(
    [
        table("airport", "code city", "code"),
        table("flight", "id origin dest_apt", "id", origin=("airport", "code")),
    ]
)
NO_KEY = [
    "SELECT 1 FROM flight f JOIN airport a ON f.dest_airport = a.code",
    "SELECT 1 FROM flight f JOIN airport o ON f.code = o.code JOIN airport d ON f.code = d.code",
    "SELECT 1 FROM flight f JOIN airport a ON f.origin = a.code AND f.code = a.code",
    "SELECT 1 FROM flight f JOIN airport a ON NOT f.code = a.code",
    "SELECT 1 FROM flight f JOIN airport a ON f.id = 3 OR f.code = a.code",
    "SELECT 1 FROM flight f JOIN airport a ON (f.code = a.code) = 0",
    "SELECT 1 FROM flight f JOIN airport a ON CASE WHEN f.code = a.code THEN 1 ELSE 0 END = 0",
    "SELECT 1 FROM flight f JOIN airport AS a(city, code) ON f.code = a.code",
]
"""Joins that may mean another column than the one key between their tables."""
GLUED = [
    ("SELECT SUM(客户编号) FROM 客户", "SELECT SUM(客户.{编号}) FROM 客户"),
    ("SELECT SUM(c.编号) FROM 客户 c WHERE 客户姓名 = 'x'", "SELECT SUM(c.编号) FROM 客户 c WHERE c.{姓名} = 'x'"),
    ("SELECT repsfirst_name FROM reps", "SELECT reps.first_name FROM reps"),
]
NEAR = "restaurant r JOIN geographic g ON r.city_name = g.city_name"
AMBIGUOUS = [
    (f"SELECT city_name, count(*) FROM {NEAR} GROUP BY city_name", "r.city_name, count(*)", "GROUP BY r.city_name"),
    (f"SELECT city_name, count(*) FROM {NEAR} GROUP BY g.city_name", "g.city_name, count(*)", "GROUP BY g.city_name"),
    (f"SELECT DISTINCT g.city_name FROM {NEAR} WHERE city_name > 'b'", "g.city_name", "WHERE g.city_name > 'b'"),
    (f"SELECT DISTINCT g.city_name FROM {NEAR} ORDER BY city_name", "g.city_name", "ORDER BY g.city_name"),
    (
        "SELECT count(*) FROM restaurant r, location l, geographic g WHERE (g.city_name = l.city_name) "
        "AND r.id = l.restaurant_id AND l.city_name = r.city_name AND city_name = 'x'",
        "count(*)",
        "AND r.city_name = 'x'",
    ),
]
"""A column that joins make equal wherever it is, and how its mended statement begins and ends."""
NO_DOT = [
    ("SELECT cid FROM customers c", SHOP),
    ("SELECT restaurantid FROM restaurant", Schema([*FOOD.tables.values(), table("visits", "restaurantid day")])),
    ("SELECT (SELECT max(l.house) FROM location l WHERE restaurantname = 'x') FROM restaurant", FOOD),
]
"""What an alias seems to begin, what another table has, and what the query around this one has."""
NOT_EQUAL = [
    "SELECT city_name FROM restaurant r, geographic g",
    "SELECT city_name FROM restaurant r LEFT JOIN geographic g ON r.city_name = g.city_name",
    "SELECT city_name FROM restaurant r JOIN geographic g ON r.city_name = g.city_name OR g.region = 'x'",
    "SELECT city_name FROM restaurant r JOIN geographic g USING (city_name)",
    "SELECT city_name FROM restaurant r JOIN location l ON r.id = l.restaurant_id "
    "JOIN geographic g ON g.city_name = l.city_name",
    f"SELECT upper(g.city_name) AS city_name FROM {NEAR} GROUP BY city_name",
]
"""What a database refuses, or reads in its own way."""
UNCERTAIN = [
    ("SELECT x.city_name FROM restaurant r, location l", "Write r.city_name or l.city_name."),
    (
        f"SELECT T9.county FROM {JOINED}",
        "county is in geographic: JOIN geographic ON geographic.city_name = T1.city_name.",
    ),
    (
        "SELECT 1 FROM location l JOIN location m ON l.id = m.restaurant_id",
        "no column l.id. id is in restaurant: JOIN restaurant ON restaurant.id = l.restaurant_id.",
    ),
    ("SELECT 1 FROM location l JOIN restaurant r ON l.id = r.rating", "Its key is l.restaurant_id = r.id."),
    ("SELECT 1 FROM location l JOIN restaurant r ON l.id > r.id", "Its key is l.restaurant_id = r.id."),
    (
        "SELECT 1 FROM restaurant r JOIN (SELECT restaurant_id AS id FROM location) l ON r.key = l.id",
        "r has id, name, food_type, city_name, rating.",
    ),
    (
        "SELECT r.name FROM restaurant r JOIN location l ON r.id = l.id JOIN reps p ON p.id = r.id",
        "no column l.id. l has restaurant_id, house, street_name, city_name. Its key is l.restaurant_id = r.id.",
    ),
    (
        "SELECT 1 FROM restaurant r JOIN sales s ON s.id = r.id JOIN reps p ON p.rep_id = s.rep_id",
        "no column s.id. s has sale_id, sale_price, rep_id. Its key is s.rep_id = p.rep_id.",
    ),
    ("SELECT 1 FROM restaurant r, location l WHERE l.id = r.id", "l has restaurant_id, house, street_name, city_name."),
    ("SELECT street_name FROM restaurant", "JOIN location ON location.restaurant_id = restaurant.id."),
    ("SELECT first_name FROM sales", "first_name is in reps: JOIN reps ON reps.rep_id = sales.rep_id."),
    ("SELECT first_name FROM 客户", "first_name is in reps. 客户 has 编号, 姓名."),
    ("SELECT r.zzz FROM restaurant r", "r has id, name, food_type, city_name, rating."),
]


BOUGHT = "orders o JOIN products p ON p.id = o.product_id"
JOIN_CUSTOMERS = "name is in customers: JOIN customers ON customers.id = o.customer_id."
LACKING = [
    (
        f"SELECT customers.name, SUM(o.total) FROM {BOUGHT} GROUP BY customers.name",
        f"no column customers.name. customers is not in the query. The query reads: o, p. {JOIN_CUSTOMERS}",
    ),
    (f"SELECT c.name, SUM(o.total) FROM {BOUGHT} GROUP BY c.name", f"Write p.name. {JOIN_CUSTOMERS}"),
    (f"SELECT o.name, SUM(o.total) FROM {BOUGHT} GROUP BY o.name", f"Write p.name. {JOIN_CUSTOMERS}"),
    (
        "SELECT o.id FROM orders o WHERE o.customer_id IN (SELECT c.id FROM customers c WHERE c.total > 8)",
        "o.total is of the query around this one. total is in orders: JOIN orders ON orders.customer_id = c.id.",
    ),
    (
        "SELECT (SELECT max(x.total) FROM products p WHERE p.id = o.product_id) FROM orders o",
        "o.total is of the query around this one. total is in orders: JOIN orders ON orders.product_id = p.id.",
    ),
    ("SELECT customers.name FROM (SELECT name FROM products) p", "customers is not in the query. The query reads: p. "),
]
"""What one source in sight would fit, though the query lacks the table that is meant."""


def mend(sql: str, dialect: str = "sqlite", schema: Schema = FOOD) -> str:
    judged = Guard(dialect).judge(sql)
    return apply_mends(judged.text, Resolver(schema, dialect).mends(judged.tree))


@pytest.mark.parametrize("sql", NO_KEY)
def test_a_join_that_may_mean_another_key_is_refused(sql: str) -> None:
    with pytest.raises(ColumnNotFound):
        Resolver(FLIGHTS, "duckdb").mends(Guard("duckdb").judge(sql).tree)


def test_a_schema_that_hides_columns_mends_no_key() -> None:
    tree = Guard("sqlite").judge("SELECT 1 FROM flight f JOIN airport a ON f.code = a.code").tree
    assert len(Resolver(FLIGHTS, "sqlite").mends(tree)) == 1
    with pytest.raises(ColumnNotFound):
        Resolver(FLIGHTS, "sqlite").mends(tree, keys=False)


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql", "duckdb", "mysql"])
@pytest.mark.parametrize(("sql", "mended"), [*MENDED, *KEYS])
def test_a_qualifier_is_mended_where_one_source_has_the_column(dialect: str, sql: str, mended: str) -> None:
    if dialect == "duckdb" and any(lost in sql for lost in ("x.name", "restaurant.name", "k.姓名")):
        return  # DuckDB may take an unknown qualifier for a struct: the database decides
    assert mend(sql, dialect) == mended
    assert mend(mended, dialect) == mended


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql", "duckdb", "mysql"])
@pytest.mark.parametrize(("sql", "mended"), GLUED)
def test_a_source_and_its_column_without_a_dot_get_one(dialect: str, sql: str, mended: str) -> None:
    assert mend(sql, dialect) == mended.format(**{name: quote_identifier(name, dialect) for name in ("编号", "姓名")})


@pytest.mark.parametrize(("sql", "schema"), NO_DOT)
def test_a_name_that_may_be_another_column_gets_no_dot(sql: str, schema: Schema) -> None:
    with pytest.raises(ColumnNotFound):
        mend(sql, schema=schema)


def test_a_name_with_a_new_dot_is_sql() -> None:
    schema = Schema([table("users", "id Group")])
    assert mend("SELECT usersGroup FROM users", "mysql", schema) == "SELECT users.`Group` FROM users"


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql", "duckdb", "mysql"])
@pytest.mark.parametrize(("sql", "begin", "end"), AMBIGUOUS)
def test_an_ambiguous_column_is_mended_where_the_joins_make_it_equal(
    dialect: str, sql: str, begin: str, end: str
) -> None:
    mended = mend(sql, dialect)
    assert mended.removeprefix("SELECT ").removeprefix("DISTINCT ").startswith(f"{begin} FROM ")
    assert mended.endswith(end)
    assert mend(mended, dialect) == mended


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql", "duckdb", "mysql"])
@pytest.mark.parametrize("sql", NOT_EQUAL)
def test_an_ambiguous_column_that_may_differ_is_left_to_the_database(dialect: str, sql: str) -> None:
    assert mend(sql, dialect) == sql


@pytest.mark.parametrize(("sql", "hint"), UNCERTAIN)
def test_what_is_not_certain_is_refused_with_the_place(sql: str, hint: str) -> None:
    with pytest.raises(ColumnNotFound) as refused:
        mend(sql)
    assert hint in str(refused.value)


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql", "duckdb", "mysql"])
@pytest.mark.parametrize(("sql", "hint"), LACKING)
def test_a_table_that_the_query_lacks_is_not_read_as_another(dialect: str, sql: str, hint: str) -> None:
    if (dialect == "duckdb" and any(lost in sql for lost in ("c.name", "x.total"))) or (
        dialect == "postgresql" and "o.name" in sql
    ):
        return  # a struct to DuckDB, and a cast of the row to PostgreSQL: the database decides
    with pytest.raises(ColumnNotFound) as refused:
        mend(sql, dialect, SHOP)
    assert hint in str(refused.value)


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql", "duckdb", "mysql"])
def test_a_hint_is_sql(dialect: str) -> None:
    details = table("order details", "id Order price", Order=("orders", "id"))
    schema = Schema([details, table("orders", "id total", "id")])
    with pytest.raises(ColumnNotFound) as refused:
        mend("SELECT price FROM orders", dialect, schema)
    name, key = quote_identifier("order details", dialect), quote_identifier("Order", dialect)
    assert f"price is in order details: JOIN {name} ON {name}.{key} = orders.id." in str(refused.value)
    with pytest.raises(ColumnNotFound) as refused:
        mend(
            "SELECT o.ID FROM (SELECT total FROM orders) o JOIN orders a ON 1 = 1 JOIN orders b ON 1 = 1",
            dialect,
            schema,
        )
    assert "Write a.id or b.id." in str(refused.value)


def test_the_only_table_with_a_column_is_certain() -> None:
    sql = f"SELECT o.price FROM {BOUGHT} WHERE orders.total > 1"
    assert mend(sql, schema=SHOP) == f"SELECT p.price FROM {BOUGHT} WHERE o.total > 1"


def test_one_uncertain_column_leaves_the_statement_as_it_is() -> None:
    with pytest.raises(ColumnNotFound) as refused:
        mend(f"SELECT T1.street_name, T2.missing FROM {JOINED}")
    assert "There is no column T1.street_name. Write T2.street_name." in str(refused.value)
    assert "There is no column T2.missing." in str(refused.value)


def test_all_unknown_columns_are_named_in_their_order() -> None:
    with pytest.raises(ColumnNotFound) as refused:
        mend("SELECT rating, countyy, stars FROM restaurant WHERE foods = 'x' ORDER BY countyy")
    text = str(refused.value)
    assert [text.count(f"no column {name}.") for name in ("countyy", "stars", "foods")] == [1, 1, 1]
    assert text.index("countyy") < text.index("stars") < text.index("foods")


def test_unknown_tables_are_all_named_with_the_tables_that_have_their_columns() -> None:
    with pytest.raises(TableNotFound) as refused:
        mend("SELECT a.rep_id, a.first_name FROM people a JOIN citys b ON a.id = b.county")
    text = str(refused.value)
    assert "There is no table people." in text
    assert "reps has rep_id, first_name" in text
    assert "There is no table citys." in text
    assert "geographic has county." in text


async def test_a_mended_statement_runs_and_says_so(opened: Any, make_sqlite: Any, ask: Any) -> None:
    source = await opened(
        make_sqlite(
            "CREATE TABLE a (id INTEGER, name TEXT); CREATE TABLE b (a_id INTEGER, street TEXT)",
            a=[(1, "one")],
            b=[(1, "road")],
        )
    )
    observed = await ask(source, "run_sql", sql="SELECT x.street FROM a AS x JOIN b AS y ON x.id = y.a_id")
    assert observed["data"]["rows"] == [["road"]]
    assert observed["data"]["sql"] == "SELECT y.street FROM a AS x JOIN b AS y ON x.id = y.a_id"
    assert "x.street was read as y.street" in " ".join(observed["data"]["notes"])


async def test_a_key_that_no_table_declares_mends_a_join(opened: Any, make_sqlite: Any, ask: Any) -> None:
    source = await opened(
        make_sqlite(
            "CREATE TABLE ticker (tickerId INTEGER, kind TEXT); CREATE TABLE price (dpTickerId INTEGER, amount REAL)",
            ticker=[(1, "stock"), (2, "fund")],
            price=[(1, 3.0), (2, 5.0), (2, 7.0)],
        )
    )
    sql = "SELECT t.kind, MAX(p.amount) FROM price p JOIN ticker t ON p.tickerId = t.tickerId GROUP BY t.kind"
    refused = await ask(source, "run_sql", sql=sql)
    assert not refused["ok"], "no prompt has shown its keys yet"
    await source.values(await source.schema())
    observed = await ask(source, "run_sql", sql=sql)
    assert observed["data"]["rows"] == [["fund", 7.0], ["stock", 3.0]]
    assert "p.tickerId was read as p.dpTickerId, the key of that join." in observed["data"]["notes"]
    refused = await ask(source, "run_sql", sql=sql.replace("p.tickerId =", "p.tickerId + 0 ="))
    assert "Its key is p.dpTickerId = t.tickerId." in refused["error"]["message"]


async def test_an_explained_statement_is_not_mended(opened: Any, make_sqlite: Any, ask: Any) -> None:
    source = await opened(make_sqlite("CREATE TABLE a (id INTEGER)"))
    refused = await ask(source, "run_sql", sql="EXPLAIN QUERY PLAN SELECT x.id FROM a")
    assert refused["error"]["message"].endswith("Write a.id. Send the corrected SQL.")


async def test_an_ambiguous_column_is_told_with_its_tables(opened: Any, make_sqlite: Any, ask: Any) -> None:
    source = await opened(make_sqlite("CREATE TABLE a (id INTEGER, n TEXT); CREATE TABLE b (id INTEGER, n TEXT)"))
    refused = await ask(source, "run_sql", sql="SELECT n FROM a JOIN b AS other ON a.id = other.id")
    assert "ambiguous column name: n. Write a.n or other.n." in refused["error"]["message"]


@pytest.fixture(params=ENGINES)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    tables = "".join(f"CREATE TABLE {name} (id INTEGER); INSERT INTO {name} VALUES (1), (2);" for name in "ab")
    return made_database(request, tables, tmp_path)


async def test_an_ambiguous_column_runs_on_its_engine(opened: Any, pair: str, ask: Any) -> None:
    source = await opened(pair)
    sql = "SELECT DISTINCT id FROM a JOIN b ON a.id = b.id GROUP BY b.id ORDER BY id"
    observed = await ask(source, "run_sql", sql=sql)
    assert observed["data"]["rows"] == [[1], [2]]
    assert observed["data"]["notes"][-1] == "id was read as b.id: the joins make it equal in a and b."


async def test_a_fence_within_the_call_is_not_part_of_the_statement(opened: Any, make_sqlite: Any, ask: Any) -> None:
    source = await opened(make_sqlite("CREATE TABLE a (id INTEGER)"))
    observed = await ask(source, "run_sql", sql="```sql\nSELECT count(*) FROM a\n```")
    assert observed["data"]["rows"] == [[0]]
