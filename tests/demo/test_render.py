"""Plans as SQL of each dialect, checked by running it where an engine is at hand."""

from __future__ import annotations

import duckdb
import pytest

from longthread_demo.query.dialect import literal, quote_table
from longthread_demo.query.plan import Condition, Dimension, Field, PlannedMeasure, QueryPlan, field_of
from longthread_demo.query.render import Unreachable, sql_of
from longthread_demo.schema import DemoSchema, DemoTable, Ref, schema_of


def schema(dialect: str) -> DemoSchema:
    def column(name: str, kind: str) -> dict[str, object]:
        return {"name": name, "type": kind, "primary_key": name == "id"}

    shop = {"table_name": "shop", "primary_key": ["id"], "columns": [column("id", "INTEGER"), column("name", "TEXT")]}
    sale = {
        "table_name": "sale",
        "primary_key": ["id"],
        "columns": [
            column("id", "INTEGER"), column("shop_id", "INTEGER"),
            column("sold on", "DATE"), column("total", "INTEGER"),
        ],
        "foreign_keys": [{"columns": ["shop_id"], "table": "shop", "references": ["id"]}],
    }  # fmt: skip
    line = {
        "table_name": "line",
        "primary_key": ["id"],
        "columns": [column("id", "INTEGER"), column("sale_id", "INTEGER"), column("color", "TEXT")],
        "foreign_keys": [{"columns": ["sale_id"], "table": "sale", "references": ["id"]}],
    }
    alone = {"table_name": "alone", "columns": [column("word", "TEXT")]}
    tables = {"shop": shop, "sale": sale, "line": line, "alone": alone}
    return schema_of({"dialect": dialect, "tables": list(tables), "schemas": tables})


@pytest.fixture
def engine() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE shop (id INTEGER, name TEXT)")
    connection.execute('CREATE TABLE sale (id INTEGER, shop_id INTEGER, "sold on" DATE, total INTEGER)')
    connection.execute("CREATE TABLE line (id INTEGER, sale_id INTEGER, color TEXT)")
    connection.execute("INSERT INTO shop VALUES (1, 'north'), (2, 'south')")
    connection.execute(
        "INSERT INTO sale VALUES (1, 1, '2020-02-03', 10), (2, 1, '2021-05-06', 20), (3, 2, '2021-11-01', 5)"
    )
    connection.execute("INSERT INTO line VALUES (1, 1, 'red'), (2, 1, 'red'), (3, 2, 'blue')")
    return connection


DATED = field_of("sale", "sold on")
TOTAL = PlannedMeasure("sum", "sale", field_of("sale", "total"))


@pytest.mark.parametrize(
    ("grain", "expected"),
    [
        ("year", [(2020, 10), (2021, 25)]),
        ("quarter", [("2020-Q1", 10), ("2021-Q2", 20), ("2021-Q4", 5)]),
        ("month", [("2020-02", 10), ("2021-05", 20), ("2021-11", 5)]),
        ("day", [("2020-02-03", 10), ("2021-05-06", 20), ("2021-11-01", 5)]),
    ],
)
def test_dates_are_cut_on_duckdb(
    engine: duckdb.DuckDBPyConnection, grain: str, expected: list[tuple[object, int]]
) -> None:
    plan = QueryPlan("sale", measures=(TOTAL,), dimensions=(Dimension((DATED,), grain),))
    assert engine.execute(sql_of(plan, schema("duckdb"))).fetchall() == expected


def test_dates_are_cut_on_postgresql() -> None:
    plan = QueryPlan("sale", measures=(TOTAL,), dimensions=(Dimension((DATED,), "quarter"),))
    assert """to_char("sold on", 'YYYY-"Q"Q')""" in sql_of(plan, schema("postgresql"))


def test_a_sum_is_not_multiplied_by_a_join_to_many(engine: duckdb.DuckDBPyConnection) -> None:
    red = Condition(field_of("line", "color"), "=", ("red",))
    plan = QueryPlan("sale", measures=(TOTAL,), conditions=(red,))
    assert engine.execute(sql_of(plan, schema("duckdb"))).fetchall() == [(10,)]


def test_exclusion_among_many_rows_excludes_the_owner(engine: duckdb.DuckDBPyConnection) -> None:
    plan = QueryPlan(
        "sale", shown=(field_of("sale", "id"),), conditions=(Condition(field_of("line", "color"), "!=", ("red",)),)
    )
    assert sorted(engine.execute(sql_of(plan, schema("duckdb"))).fetchall()) == [(2,), (3,)]


def test_the_newest_year_is_taken_from_the_data(engine: duckdb.DuckDBPyConnection) -> None:
    plan = QueryPlan("sale", measures=(TOTAL,), conditions=(Condition(DATED, "newest", ("year", 0)),))
    assert engine.execute(sql_of(plan, schema("duckdb"))).fetchall() == [(25,)]


def test_groups_without_rows_are_kept_for_the_fewest(engine: duckdb.DuckDBPyConnection) -> None:
    engine.execute("INSERT INTO shop VALUES (3, 'empty')")
    count = PlannedMeasure("count", "sale")
    dimension = Dimension((Field(Ref("shop", "name")),), key=Field(Ref("shop", "id")))
    plan = QueryPlan(
        "sale", measures=(count,), dimensions=(dimension,), order=count, descending=False, limit=1, keep_empty=True
    )
    assert engine.execute(sql_of(plan, schema("duckdb"))).fetchall() == [("empty", 0)]


def test_tables_without_a_key_between_them_cannot_be_joined() -> None:
    plan = QueryPlan("sale", shown=(field_of("alone", "word"),))
    with pytest.raises(Unreachable):
        sql_of(plan, schema("sqlite"))


@pytest.mark.parametrize(
    ("table", "dialect", "sql"),
    [
        (DemoTable("at"), "duckdb", '"at"'),
        (DemoTable("Name"), "postgresql", '"Name"'),
        (DemoTable("s.order"), "postgresql", '"s"."order"'),
        (DemoTable("s.order", sql_name='"s.order"'), "postgresql", '"s.order"'),
        (DemoTable("s.order"), "sqlite", '"s.order"'),
        (DemoTable("s.or`der"), "mysql", "`s.or``der`"),
        (DemoTable('a"b'), "sqlite", '"a""b"'),
        (DemoTable("客户"), "sqlite", '"客户"'),
    ],
)
def test_every_name_is_quoted(table: DemoTable, dialect: str, sql: str) -> None:
    assert quote_table(table, dialect) == sql


def test_values_are_escaped() -> None:
    assert literal("O'Brien'; DROP TABLE x; --") == "'O''Brien''; DROP TABLE x; --'"
    assert literal(2.0) == "2"
