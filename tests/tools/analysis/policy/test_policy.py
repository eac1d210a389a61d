"""What a user may not read is not read, by whatever statement, on the real engines."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from tests import mysqlserver
from tests.engines import ENGINES

from longthread.errors import PolicyUnusable
from longthread.tools.analysis.address import SourceUrl
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.schema import Schema
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.user_policy import UserPolicy

Ask = Callable[..., Awaitable[dict[str, Any]]]
TABLES = """
CREATE TABLE customers (
  id INTEGER PRIMARY KEY, name VARCHAR(40), email VARCHAR(40), region VARCHAR(20), phone VARCHAR(20)
);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id), total INTEGER);
CREATE TABLE salaries (id INTEGER PRIMARY KEY, amount INTEGER);
CREATE TABLE plain (id INTEGER, note VARCHAR(20));
INSERT INTO customers VALUES (1, 'Ada', 'ada@seen.example', 'EU', 'phone-1'),
  (2, 'Bo', 'bo@seen.example', 'EU', 'phone-2'),
  (3, 'HIDDEN-Eve', 'eve@hidden.example', 'HIDDENLAND', 'phone-3');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7), (12, 3, 987654);
INSERT INTO salaries VALUES (1, 987654);
INSERT INTO plain VALUES (1, 'x'), (3, 'y');
CREATE VIEW europeans AS SELECT id, name FROM customers WHERE id > 0;
CREATE VIEW twice (number, label) AS SELECT e.id * 2, e.name FROM europeans e;
CREATE VIEW leaking AS SELECT email FROM customers;
CREATE VIEW paid AS SELECT amount FROM salaries;
"""
OWN = ("leak", "st_leak", "month", "area", "length")
"""Names of functions of the database's own. Some are also those of functions that only compute."""
POLICY = UserPolicy(
    values={"user": "ada", "region": "EU", "customers": [1, 2]},
    rows={"customers": "region = :region", "orders": "customer_id IN (:customers)"},
    hide={"customers": frozenset({"email"})},
    mask={"customers": {"phone": "'***'"}},
    hidden=frozenset({"salaries"}),
)
SECRETS = ("HIDDEN", "hidden.example", "seen.example", "987654", "phone-")

BYPASSES = [
    "SELECT * FROM customers",
    "SELECT c.* FROM customers AS c",
    "SELECT c FROM customers c",
    "SELECT customers.name FROM customers",
    'SELECT "customers"."name" FROM "customers"',
    "SELECT name FROM CUSTOMERS",
    'SELECT name FROM "CUSTOMERS"',
    "SELECT name FROM main.customers",
    "SELECT name FROM public.customers",
    "SELECT main.customers.name FROM main.customers",
    "SELECT email FROM customers",
    "SELECT customers.email FROM customers",
    "SELECT name FROM customers ORDER BY email",
    "SELECT count(*) FROM customers GROUP BY email",
    "SELECT name FROM customers WHERE email LIKE 'e%'",
    "SELECT phone FROM customers",
    "SELECT max(phone), min(name), count(*) FROM customers",
    "SELECT name FROM customers UNION SELECT name FROM customers",
    "SELECT 'x' UNION ALL SELECT email FROM customers",
    "SELECT amount FROM salaries",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM salaries)",
    "WITH s AS (SELECT * FROM salaries) SELECT * FROM s",
    "WITH c AS (SELECT * FROM customers) SELECT * FROM c",
    "WITH customers AS (SELECT 1 AS id) SELECT * FROM customers",
    "WITH x AS (SELECT * FROM customers), customers AS (SELECT 1) SELECT * FROM x",
    "WITH salaries AS (SELECT * FROM salaries) SELECT * FROM salaries",
    "SELECT * FROM (WITH salaries AS (SELECT 1 AS amount) SELECT * FROM salaries) a, salaries b",
    "SELECT (SELECT max(total) FROM orders) FROM plain",
    "SELECT p.id, (SELECT c.name FROM customers c WHERE c.id = p.id) FROM plain p",
    "SELECT p.id FROM plain p WHERE p.id IN (SELECT id FROM customers WHERE id > 2)",
    "SELECT o.total FROM orders o JOIN customers c ON c.id = o.customer_id",
    "SELECT total FROM orders NATURAL JOIN plain",
    "SELECT c.name, o.total FROM orders o LEFT JOIN customers c ON c.id = o.customer_id OR 1 = 1",
    "SELECT a.name FROM customers a, customers b, customers c",
    "SELECT a.name FROM (customers a JOIN orders o ON o.customer_id = a.id)",
    "SELECT name FROM (SELECT * FROM (SELECT * FROM customers) x) y",
    "SELECT name FROM customers WHERE region = 'XX' OR 1 = 1",
    "SELECT name FROM customers -- WHERE",
    "SELECT name FROM customers /* ) */ WHERE 1 = 1 OR ('a' = 'a')",
    "SELECT sum(total) OVER () FROM orders",
    "SELECT name FROM europeans",
    "SELECT label FROM twice",
    "SELECT email FROM leaking",
    "SELECT amount FROM paid",
    "EXPLAIN SELECT * FROM customers",
    "EXPLAIN ANALYZE SELECT * FROM customers",
    "SELECT sql FROM sqlite_master",
    "SELECT * FROM sqlite_stat1",
    "SELECT column_name FROM information_schema.columns",
    "SELECT table_name FROM information_schema.tables",
    "SELECT relname, reltuples FROM pg_class",
    "SELECT attname FROM pg_catalog.pg_attribute",
    "SELECT pg_get_viewdef('leaking')",
    "SELECT pg_relation_size('salaries')",
    "SELECT * FROM duckdb_columns()",
    "SELECT * FROM histogram('customers', 'email')",
    "SELECT * FROM histogram_values('customers', 'email')",
    "SELECT * FROM summary('customers')",
    "SUMMARIZE customers",
    "DESCRIBE salaries",
    "SHOW TABLES",
    "FROM customers",
    "TABLE customers",
    "SELECT COLUMNS('.*') FROM customers",
    "SELECT * EXCLUDE (id) FROM customers",
    "PIVOT customers ON region USING count(*)",
    "SELECT name FROM customers TABLESAMPLE SYSTEM (100)",
    "SELECT name FROM ONLY customers",
    "SELECT row_to_json(c) FROM customers c",
    "SELECT json_group_array(name) FROM customers",
    "SELECT rowid, ctid FROM customers",
    "SELECT id FROM plain WHERE 987654 IN salaries",
    "SELECT CAST(name AS INTEGER) FROM customers WHERE CAST(name AS INTEGER) > 0",
    "SELECT 1 FROM customers WHERE json_extract(name, '$.a') = 1",
    "SELECT id FROM customers WHERE CAST(region AS INTEGER) = 1 AND name LIKE 'HID%'",
    "SELECT * FROM customers, LATERAL (SELECT * FROM orders WHERE customer_id = customers.id) x",
    "VALUES ((SELECT max(amount) FROM salaries))",
    "SELECT leak(1)",
    "TABLE salaries",
    "SELECT `c`.`email` FROM `customers` AS `c`",
    "SELECT _rowid FROM salaries",
    "SELECT DEFAULT(email) FROM customers",
    "SELECT name FROM customers PARTITION (p0)",
    "SELECT name FROM customers USE INDEX (PRIMARY)",
    "SELECT name FROM customers FOR SYSTEM_TIME ALL",
    "SELECT name FROM customers WHERE name REGEXP 'HIDDEN' OR name RLIKE 'H'",
    "SELECT j.a FROM salaries, JSON_TABLE(CONCAT('[', amount, ']'), '$[*]' COLUMNS (a INT PATH '$')) AS j",
    "SELECT GROUP_CONCAT(name SEPARATOR '|') FROM customers",
    "SELECT view_definition FROM information_schema.views",
    "SELECT /*! email, */ name FROM customers",
    "SELECT name FROM customers HAVING email LIKE 'e%'",
    # An invisible character is a letter to one reader, and a space, or nothing, to another.
    'WITH "\ufeffsalaries" AS (SELECT 1 AS amount) SELECT amount FROM \ufeffsalaries',
    'WITH "\u200bcustomers" AS (SELECT 1 AS email) SELECT email FROM \u200bcustomers',
    "SELECT (SELECT amount\u200bFROM\u200bsalaries\u200bLIMIT\u200b1) "
    "FROM (SELECT 1 AS amount\u200bFROM\u200bsalaries\u200bLIMIT\u200b1) x",
    "SELECT p.id, h.* FROM plain p, LATERAL histogram_values(salaries, amount) AS h",
    "SELECT st_leak(1)",
    "SELECT month(1)",
    "SELECT area(1)",
    "SELECT public.length(1)",
    "SELECT (p).of_row FROM plain p",
    "SELECT through FROM hidden_call",
    "SELECT * FROM orders NATURAL FULL JOIN customers",
]  # fmt: skip


@pytest.fixture(params=ENGINES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with the tables, and in PostgreSQL and DuckDB with a function that reads them."""
    if request.param == "sqlite":
        with closing(sqlite3.connect(tmp_path / "made.sqlite")) as connection:
            connection.executescript(TABLES)
        return str(tmp_path / "made.sqlite")
    if request.param == "duckdb":
        with closing(duckdb.connect(str(tmp_path / "made.duckdb"))) as base:
            base.execute(TABLES)
            for name in OWN:
                base.execute(f"CREATE MACRO {name}(x) AS (SELECT max(amount) FROM salaries)")
            base.execute("CREATE VIEW hidden_call AS SELECT st_leak(1) AS through")
        return str(tmp_path / "made.duckdb")
    if request.param == "mysql":
        given = str(request.getfixturevalue("mysql_url"))
        body = "(x INT) RETURNS INT READS SQL DATA RETURN (SELECT max(amount) FROM salaries);"
        mysqlserver.run(given, TABLES + "".join(f"CREATE FUNCTION {name}{body}" for name in ("leak", "st_leak")))
        mysqlserver.run(given, "CREATE VIEW hidden_call AS SELECT st_leak(1) AS through")
        return given
    url = str(request.getfixturevalue("postgres_url"))
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(TABLES.encode())
        for name, argument in (*((name, "int") for name in OWN), ("of_row", "plain")):
            body = "RETURNS int STABLE LANGUAGE sql AS 'SELECT max(amount) FROM salaries'"
            server.execute(f"CREATE FUNCTION {name}({argument}) {body}".encode())
        server.execute("CREATE VIEW hidden_call AS SELECT st_leak(1) AS through")
    return url


@pytest.fixture
async def source(address: str) -> AsyncIterator[Source]:
    async with await open_source(address, policy=POLICY) as opened:
        yield opened


async def told(source: Source, ask: Ask) -> list[str]:
    """The statements whose observation holds what may not be read."""
    found = []
    for sql in BYPASSES:
        observation = await ask(source, "run_sql", sql=sql)
        if observation["ok"]:
            del observation["data"]["sql"]
        if any(secret in json.dumps(observation) for secret in SECRETS):
            found.append(sql)
    return found


async def test_no_statement_tells_what_may_not_be_read(source: Source, ask: Ask) -> None:
    assert await told(source, ask) == []


async def test_without_a_policy_they_do(address: str, ask: Ask) -> None:
    async with await open_source(address) as plain:
        assert len(await told(plain, ask)) > 25


RESULTS = [
    ("SELECT id, name, phone FROM customers ORDER BY id", [[1, "Ada", "***"], [2, "Bo", "***"]]),
    ("SELECT * FROM customers ORDER BY id", [[1, "Ada", "EU", "***"], [2, "Bo", "EU", "***"]]),
    ("SELECT count(*), sum(total) FROM orders", [[2, 12]]),
    ("SELECT name, total FROM customers c JOIN orders o ON o.customer_id = c.id ORDER BY 1", [["Ada", 5], ["Bo", 7]]),
    ("SELECT name FROM europeans ORDER BY 1", [["Ada"], ["Bo"]]),
    ("SELECT number, label FROM twice ORDER BY 1", [[2, "Ada"], [4, "Bo"]]),
    ("WITH t AS (SELECT customer_id AS c, total FROM orders) SELECT sum(total) FROM t WHERE c < 9", [[12]]),
    ("SELECT p.id, (SELECT name FROM customers c WHERE c.id = p.id) FROM plain p ORDER BY 1", [[1, "Ada"], [3, None]]),
    ("SELECT id FROM plain WHERE id NOT IN (SELECT id FROM customers)", [[3]]),
    ("SELECT count(*) FROM plain WHERE 3 IN (SELECT id FROM customers)", [[0]]),
    ("SELECT total, row_number() OVER (ORDER BY total DESC) FROM orders ORDER BY 2", [[7, 1], [5, 2]]),
    ("SELECT name FROM customers UNION SELECT note FROM plain ORDER BY 1", [["Ada"], ["Bo"], ["x"], ["y"]]),
    ("SELECT id FROM customers EXCEPT SELECT customer_id FROM orders", []),
    ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT max(i) FROM n, orders", [[3]]),
]  # fmt: skip


async def test_what_may_be_read_is_read(source: Source, ask: Ask) -> None:
    for sql, rows in RESULTS:
        found = await ask(source, "run_sql", sql=sql)
        assert found["ok"], found
        assert (found["data"]["rows"], found["data"]["sql"]) == (rows, sql)


async def test_the_other_tools_show_no_more(source: Source, ask: Ask) -> None:
    listing = (await ask(source, "list_tables"))["data"]
    assert sorted(listing["tables"]) == ["customers", "europeans", "orders", "plain", "twice"]
    assert listing["columns"]["customers"] == ["id", "name", "region", "phone"]
    assert listing["about"]["customers"]["rows"] == 2
    assert listing["about"]["twice"]["rows"] == 2
    shown = json.dumps([await ask(source, "describe_table", table=name) for name in listing["tables"]])
    shown += json.dumps([await ask(source, "sample_rows", table=name) for name in listing["tables"]])
    assert not [secret for secret in SECRETS if secret in shown]
    assert "email" not in shown
    for hidden in ("salaries", "paid", "leaking"):
        assert (await ask(source, "describe_table", table=hidden))["error"]["type"] == "unknown_table"
        assert (await ask(source, "sample_rows", table=hidden))["error"]["type"] == "unknown_table"


async def test_no_column_is_named_after_a_policy(source: Source, ask: Ask) -> None:
    for sql in (
        "SELECT CASE WHEN EXISTS (SELECT 1 FROM customers WHERE id = 9) THEN 1 END",
        "SELECT (SELECT count(*) FROM customers), 1 UNION SELECT 1, 2",
        "SELECT (SELECT max(phone) FROM customers)",
    ):
        found = await ask(source, "run_sql", sql=sql)
        assert found["ok"], found
        assert not [name for name in found["data"]["columns"] if "region" in name or "LIMIT" in name]


@pytest.mark.postgres
async def test_no_type_or_number_tells_of_a_table(postgres_url: str, ask: Ask) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(TABLES.encode())
    async with await open_source(postgres_url, policy=POLICY) as source:
        for sql in (
            "SELECT 'salaries'::regclass",
            "SELECT i::regclass FROM generate_series(16384, 16500) i",
            "SELECT CAST(i AS pg_catalog.regclass) FROM generate_series(16384, 16500) i",
            "SELECT regclass('salaries')",
            "SELECT format_type(i::int, 0) FROM generate_series(16384, 16500) i",
            "SELECT (json_populate_record(NULL::salaries, '{\"id\": 1}')).*",
            "SELECT NULL::public.customers[]",
            "SELECT * FROM json_to_record('{}') AS x(a salaries)",
        ):
            assert (await ask(source, "run_sql", sql=sql))["error"]["type"] == "sql_refused", sql


async def test_partitions_of_a_table_are_no_way_around_it(postgres_url: str, ask: Ask) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute("CREATE TABLE t (id int, region text) PARTITION BY LIST (region)")
        server.execute("CREATE TABLE t_us PARTITION OF t FOR VALUES IN ('US')")
        server.execute("INSERT INTO t VALUES (987654, 'US')")
    policy = UserPolicy(rows={"t": "region = 'EU'"})
    async with await open_source(postgres_url, policy=policy) as source:
        for sql in (
            "SELECT id FROM t_us",
            "SELECT a.id FROM t_us a, (WITH t_us AS (SELECT 1) SELECT * FROM t_us) b",
            "WITH t_us AS (SELECT * FROM t_us) SELECT id FROM t_us",
            "SELECT id FROM t",
        ):
            assert "987654" not in json.dumps(await ask(source, "run_sql", sql=sql)), sql


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (UserPolicy(hidden=frozenset({"salarys"})), "names the table salarys"),
        (UserPolicy(hide={"customers": frozenset({"mail"})}), "has no column mail"),
        (UserPolicy(rows={"customers": "regon = 'EU'"}), "There is no column regon"),
        (UserPolicy(rows={"customers": "region = 'EU') OR (1 = 1"}), "is not one condition|cannot be parsed"),
        (UserPolicy(rows={"customers": "1 = 1 ORDER BY 1"}), "is not one condition|cannot be parsed"),
        (UserPolicy(rows={"customers": "region ="}), "cannot be parsed"),
        (UserPolicy(rows={"customers": "region = :user"}, values={"user": "a\0"}), "NUL"),
        (UserPolicy(rows={"customers": "region = :of"}, values={"of": [1]}), "but not in IN"),
        (UserPolicy(mask={"customers": {"phone": "(SELECT 1)"}}), "more than an expression|not one condition"),
    ],
)
async def test_a_policy_that_cannot_be_kept_lets_nobody_in(make_sqlite: Any, policy: UserPolicy, reason: str) -> None:
    with pytest.raises(PolicyUnusable, match=reason):
        await open_source(str(make_sqlite(TABLES)), policy=policy)


@pytest.mark.mysql
async def test_a_source_names_its_own_database_and_no_other(mysql_url: str, mysql_server: str, ask: Ask) -> None:
    mysqlserver.run(mysql_url, TABLES)
    home = SourceUrl.parse(mysql_url).database
    with mysqlserver.database(mysql_server) as elsewhere:
        mysqlserver.run(elsewhere, "CREATE TABLE plain (note text); INSERT INTO plain VALUES ('HIDDEN elsewhere')")
        other = SourceUrl.parse(elsewhere).database
        policy = replace(POLICY, rows=POLICY.rows | {"customers": "region REGEXP '^E'"})
        async with await open_source(mysql_url, policy=policy) as source, await open_source(mysql_url) as free:
            found = await ask(source, "run_sql", sql=f"SELECT {home}.customers.name FROM {home}.customers ORDER BY 1")
            assert found["data"]["rows"] == [["Ada"], ["Bo"]]
            found = await ask(
                source, "run_sql", sql="SELECT name FROM customers WHERE name RLIKE 'd' AND NOT phone REGEXP 'x'"
            )
            assert found["data"]["rows"] == [["Ada"]]
            sql = "SELECT n.i FROM customers, JSON_TABLE('[7]', '$[*]' COLUMNS (i int PATH '$')) n"
            assert (await ask(source, "run_sql", sql=sql))["data"]["rows"] == [[7], [7]]
            for one in (source, free):
                for sql in (f"SELECT note FROM {other}.plain", f"SELECT {other}.plain.note FROM {other}.plain"):
                    assert (await ask(one, "run_sql", sql=sql))["error"]["type"] == "unknown_table"


async def test_values_of_a_user_are_values(address: str, ask: Ask) -> None:
    for value in ("' OR 1=1 --", "EU' UNION SELECT 1,2,3,4,5 --", 'a"b', "\\' OR 1=1 --", "王芳", "eu"):
        policy = UserPolicy(rows={"customers": "region = :region"}, values={"region": value})
        async with await open_source(address, policy=policy) as source:
            found = await ask(source, "run_sql", sql="SELECT count(*) FROM customers")
            assert found["data"]["rows"] == [[0]], value


async def test_without_a_value_the_table_is_not_seen(address: str, ask: Ask) -> None:
    policy = UserPolicy(rows={"customers": "region = :region"}, values={"user": "bo"})
    async with await open_source(address, policy=policy) as source:
        assert "customers" not in (await ask(source, "list_tables"))["data"]["tables"]
        assert not (await ask(source, "run_sql", sql="SELECT * FROM customers"))["ok"]


async def test_an_empty_list_is_no_row(address: str, ask: Ask) -> None:
    policy = UserPolicy(rows={"orders": "customer_id IN (:mine)"}, values={"mine": []})
    async with await open_source(address, policy=policy) as source:
        assert (await ask(source, "run_sql", sql="SELECT count(*) FROM orders"))["data"]["rows"] == [[0]]


async def test_gold_gives_the_same_rows_behind_a_condition_that_is_always_true(shared_data: Path, ask: Ask) -> None:
    """Each table of each database is behind a subquery; a condition that holds for all rows changes no result."""
    rows = [json.loads(line) for line in (shared_data / "defog" / "gold.jsonl").read_text().splitlines()]
    same, other = 0, {}
    for base in sorted({row["db"] for row in rows}):
        address = str(shared_data / "defog" / f"{base}.sqlite")
        async with await open_source(address) as plain:
            schema: Schema = await plain.schema()
            policy = UserPolicy(rows=dict.fromkeys(schema.tables, "1 = 1"))
            async with await open_source(address, policy=policy) as bounded:
                for sql in [sql for row in rows if row["db"] == base for sql in row["sql"]]:
                    one, two = await ask(plain, "run_sql", sql=sql), await ask(bounded, "run_sql", sql=sql)
                    if "ORDER" not in sql and one["ok"] and two["ok"]:
                        for data in (one["data"], two["data"]):
                            data["rows"].sort(key=json.dumps)
                    if one["ok"] and two["ok"] and one["data"]["rows"] == two["data"]["rows"]:
                        same += 1
                    else:
                        other[sql] = two
    assert len(other) <= 2, other
    assert same >= 214
