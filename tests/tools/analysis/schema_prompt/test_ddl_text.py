"""A schema as the beginning of a prompt: whole where it fits, and the likeliest tables where it does not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.engines import ENGINES, made_database

from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.quoting import quote_identifier, quoted_if_needed, quoted_label
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table
from longthread.tools.analysis.schema_text import SchemaText, schema_text
from longthread.tools.analysis.schema_values import SourceValues, read_values
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.user_policy import UserPolicy
from longthread.view.tokens import estimate

SCRIPT = """
CREATE TABLE sites (id INTEGER PRIMARY KEY, name TEXT, "first use" TEXT);
CREATE TABLE launches (
    id INTEGER PRIMARY KEY, -- 编号
    site_id INTEGER REFERENCES sites (id),
    outcome TEXT,
    day TEXT,
    note TEXT
);
INSERT INTO sites VALUES (1, 'Kourou', '1968'), (2, 'It''s here', NULL);
INSERT INTO launches VALUES (1, 1, 'Success', '2020-01-02', 'a longer text than any value of a list would ever be'),
    (2, 2, 'Failure', '2024-05-06 10:00', NULL);
"""


def text_of(schema: Schema, values: SourceValues, budget: int = 5_000, likely: Any = ()) -> SchemaText:
    return schema_text(schema, values, dialect="sqlite", budget=budget, family="any", likely=lambda: likely)


async def read(source: Source) -> tuple[Schema, SourceValues]:
    schema = await source.schema()
    return schema, await source.work(lambda connection: read_values(connection, schema, source.dialect))


async def test_a_schema_tells_keys_comments_values_and_ranges(opened: Any, make_sqlite: Any) -> None:
    schema, values = await read(await opened(make_sqlite(SCRIPT)))
    assert text_of(schema, values).text.splitlines() == [
        "CREATE TABLE launches (id INTEGER PRIMARY KEY /* 编号 */, site_id INTEGER REFERENCES sites (id), "
        "outcome TEXT /* 'Failure', 'Success' */, day TEXT /* 2020-01-02 to 2024-05-06 */, note TEXT);",
        "CREATE TABLE sites (id INTEGER PRIMARY KEY, name TEXT /* 'It''s here', 'Kourou' */, "
        "\"first use\" TEXT /* '1968' */);",
    ]


async def test_many_values_are_not_listed(opened: Any, make_sqlite: Any) -> None:
    path = make_sqlite("CREATE TABLE t (word TEXT)", t=[(f"word {n}",) for n in range(11)])
    schema, values = await read(await opened(path))
    assert text_of(schema, values).text == "CREATE TABLE t (word TEXT);"


async def test_what_a_policy_hides_is_in_no_text(make_sqlite: Any) -> None:
    path = make_sqlite(
        'CREATE TABLE "a b" (city TEXT, salary TEXT); CREATE TABLE hidden (x TEXT)',
        **{"a b": [("Rome", "secret"), ("Oslo", "other")], "hidden": [("y",)]},
    )
    policy = UserPolicy(
        rows={"a b": "city = 'Rome'"}, hide={"a b": frozenset({"salary"})}, hidden=frozenset({"hidden"})
    )
    async with await open_source(str(path), policy=policy) as source:
        schema, values = await read(source)
    assert text_of(schema, values).text == "CREATE TABLE \"a b\" (city TEXT /* 'Rome' */);"
    assert (values.values, values.ranges) == ({"a b": {"city": ["Rome"]}}, {})


def many(count: int) -> Schema:
    names = [f"table_{number}" for number in range(count)]
    key = ForeignKey(("other_id",), "table_0", ("id",))
    columns = tuple(Column(name, "TEXT", comment="a comment of some words") for name in ("id", "other_id", "amount"))
    return Schema(Table(name, name, columns=columns, foreign_keys=(key,)) for name in names)


@pytest.mark.parametrize("budget", [200, 600, 2_000])
def test_a_large_schema_keeps_to_its_budget_and_names_what_is_left(budget: int) -> None:
    shown = text_of(many(60), SourceValues(), budget, likely=["table_7", "table_41"])
    assert estimate(shown.text, "any") <= budget
    assert not shown.is_whole
    assert "CREATE TABLE table_7 " in shown.text and ("CREATE TABLE table_41 " in shown.text or budget == 200)
    left = [label for label in many(60).tables if f"CREATE TABLE {label} " not in shown.text]
    assert 0 < len(left) < 60
    assert all(label in shown.text or "more" in shown.text for label in left)


def test_values_go_before_comments_and_comments_before_tables() -> None:
    schema = many(3)
    values = SourceValues({label: {"amount": ["one", "two", "three"]} for label in schema.tables})
    whole = text_of(schema, values)
    full = whole.text
    part = text_of(schema, values, estimate(full, "any") - 1)
    without_values = part.text
    assert (whole.is_whole, part.is_whole) == (True, False)
    assert ("'one'" in full, "'one'" in without_values, "a comment" in without_values) == (True, False, True)
    bare = text_of(schema, values, estimate(without_values, "any") - 1)
    assert "a comment" not in bare.text
    assert all(f"CREATE TABLE {label} " in bare.text for label in schema.tables)


def test_a_long_comment_is_not_the_whole_of_it() -> None:
    for comment, is_whole in (("a" * 100, True), ("a" * 101, False)):
        table = Table("t", "t", columns=(Column("c", "TEXT", comment=comment),))
        assert text_of(Schema([table]), SourceValues()).is_whole is is_whole


def test_allowed_values_and_types_are_whole_or_said_not_to_be() -> None:
    for column, is_whole in (
        (Column("c", "mood", labels=tuple(map(str, range(20)))), True),
        (Column("c", "mood", labels=tuple(map(str, range(21)))), False),
        (Column("c", f"VARCHAR({'9' * 60})"), False),
    ):
        assert text_of(Schema([Table("t", "t", columns=(column,))]), SourceValues()).is_whole is is_whole


def wide(count: int) -> Table:
    columns = (
        Column("id", "INTEGER"),
        *(Column(f"a_rather_long_column_name_{number}", "TEXT") for number in range(count)),
        Column("site_id", "INTEGER"),
    )
    key = ForeignKey(("site_id",), "sites", ("id",))
    return Table("facts", '"facts"', columns=columns, primary_key=("id",), foreign_keys=(key,))


@pytest.mark.parametrize("likely", [(), ("facts",), ("sites", "facts")])
def test_one_wide_table_hides_no_other_and_is_shown_in_part(likely: Any) -> None:
    small = [Table(name, name, columns=(Column("id", "INTEGER"), Column("n", "TEXT"))) for name in ("names", "sites")]
    shown = text_of(Schema([wide(300), *small]), SourceValues(), 800, likely)
    first, *others = shown.text.splitlines()
    assert others == ["CREATE TABLE names (id INTEGER, n TEXT);", "CREATE TABLE sites (id INTEGER, n TEXT);"]
    assert first.startswith("CREATE TABLE facts (id INTEGER PRIMARY KEY, a_rather_long_column_name_0 TEXT, ")
    told = first.count("a_rather_long_column_name_")
    assert first.endswith(f", site_id INTEGER REFERENCES sites (id)); -- and {300 - told} more columns")
    assert 500 < estimate(shown.text, "any") <= 800, "the room is used"
    assert not shown.is_whole


def test_a_table_that_does_not_fit_hides_no_smaller_one() -> None:
    sizes = {"a": 3, "b": 3, "large": 60, "c": 3}
    tables = [
        Table(name, name, columns=tuple(Column(f"column_{number}", "TEXT") for number in range(count)))
        for name, count in sizes.items()
    ]
    shown = text_of(Schema(tables), SourceValues(), 130, ["large", "a", "b", "c"])
    assert estimate(shown.text, "any") <= 130
    assert [name for name in sizes if f"CREATE TABLE {name} " in shown.text][:2] == ["a", "b"]


AWKWARD = {
    "order": "group Total user 2nd",
    "Order Details": "select end",
    "a.b": "key rank from",
}


@pytest.fixture(params=ENGINES)
def awkward(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """A database with names that are no words of SQL's own, and its dialect."""
    engine = request.param
    script = "".join(
        f"CREATE TABLE {quote_identifier(name, engine)} ({quote_identifier('id', engine)} INTEGER PRIMARY KEY, "
        + ", ".join(f"{quote_identifier(column, engine)} INTEGER" for column in columns.split())
        + "); "
        for name, columns in AWKWARD.items()
    )
    target, column = quote_identifier("Order Details", engine), quote_identifier("order", engine)
    script += f"CREATE TABLE plain ({column} INTEGER, FOREIGN KEY ({column}) REFERENCES {target} (id));"
    return made_database(request, script, tmp_path), engine


async def test_the_text_of_a_schema_is_sql(opened: Any, awkward: tuple[str, str], ask: Any) -> None:
    address, dialect = awkward
    source = await opened(address)
    schema = await source.schema()
    text = schema_text(schema, SourceValues(), dialect=dialect, budget=5_000, family="any", likely=list).text
    lines = dict(zip(schema.tables, text.splitlines(), strict=True))
    assert f"REFERENCES {quote_identifier('Order Details', dialect)} (id)" in lines["plain"]
    total = quote_identifier("Total", dialect) if dialect == "postgresql" else "Total"
    assert f" {total} " in lines["order"]
    for label, line in lines.items():
        name, rest = line.removeprefix("CREATE TABLE ").split(" (", 1)
        columns = [re.split(r" (?:INT|int)", each)[0] for each in rest.split(", ")]
        found = await ask(source, "run_sql", sql=f"SELECT {', '.join(columns)} FROM {name}")
        assert found["ok"], (label, found)
        assert found["data"]["columns"] == [column.name for column in schema.tables[label].columns]
    names = schema_text(schema, SourceValues(), dialect=dialect, budget=40, family="any", likely=list).text
    assert quote_identifier("Order Details", dialect) in names or "more" in names


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql", "duckdb", "mysql"])
def test_a_name_is_quoted_where_it_must_be(dialect: str) -> None:
    for name in ("order", "Group", "user", "select", "from", "2nd", "a b", "a.b", "客户"):
        assert quoted_if_needed(name, dialect) == quote_identifier(name, dialect)
    for name in ("orders", "name", "date", "year", "type", "_x1"):
        assert quoted_if_needed(name, dialect) == name
    assert (quoted_if_needed("Total", dialect) == "Total") is (dialect != "postgresql")
    assert (quoted_if_needed("rank", dialect) == "rank") is (dialect != "mysql")
    plain = {"sqlite": '"s.t"', "mysql": "`s.t`"}.get(dialect, "s.t")
    assert quoted_label("s.t", '"s"."t"', dialect) == plain


def test_a_long_type_is_cut_at_a_word() -> None:
    table = Table("t", "t", columns=(Column("c", f"ENUM('{'x' * 50}')", labels=("x", "it's")),))
    assert text_of(Schema([table]), SourceValues()).text == "CREATE TABLE t (c ENUM /* 'x', 'it''s' */);"
