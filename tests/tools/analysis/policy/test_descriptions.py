"""A schema's comments, types and allowed values tell nothing that a policy hides, in the prompt and in the tools."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engines import ENGINES, made_database

from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.schema import Column
from longthread.tools.analysis.schema_text import schema_text
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.user_policy import UserPolicy

Ask = Callable[..., Awaitable[dict[str, Any]]]
ROWS = """
INSERT INTO staff VALUES (1, 'Ada', 'sacked', 'EU', 'mild', 10, 'h1'), (2, 'Bo', 'raised', 'base9', 'hot', 20, 'h2'),
  (3, 'Cy', 'raised', 'EU', 'mild', 30, 'h3');
INSERT INTO open_table VALUES (1, 'green');
CREATE VIEW tasted AS SELECT id, mood FROM staff;
"""
COLUMNS = """id INTEGER PRIMARY KEY, name VARCHAR(40){name}, grade {grade}{of_grade}, region {region}, mood {mood},
    salary INTEGER, hash VARCHAR(9)"""
OPEN = "CREATE TABLE open_table (id INTEGER, color {color}{of_color})"
POLICY = UserPolicy(
    rows={"staff": "region = 'EU'"},
    mask={"staff": {"grade": None}},
    hide={"staff": frozenset({"salary", "hash"})},
    hidden=frozenset({"payroll"}),
)
SECRETS = ("sacked", "raised", "base9", "hot", "salary", "hash", "payroll", "amount", "900000")


def checked(name: str, *labels: str) -> str:
    return f"VARCHAR(9) CHECK ({name} IN ({', '.join(map(repr, labels))}))"


def script(engine: str) -> str:
    if engine in ("sqlite", "postgresql"):
        types = {"grade": checked("grade", "sacked", "raised"), "region": checked("region", "EU", "base9")}
        types |= {"color": checked("color", "green", "red")}
    else:
        types = {"grade": "ENUM('sacked', 'raised')", "region": "ENUM('EU', 'base9')", "color": "ENUM('green', 'red')"}
    types["mood"] = {"postgresql": "mood", "sqlite": checked("mood", "mild", "hot")}.get(engine, "ENUM('mild', 'hot')")
    texts = {
        "name": "joined to payroll by salary",
        "of_grade": "sacked or so",
        "of_color": "as in payroll.amount",
        "seen": "employees",
    }
    inline = dict.fromkeys(texts, "")
    if engine == "mysql":
        inline = {name: f" COMMENT '{text}'" for name, text in texts.items()}
    if engine == "sqlite":
        inline = {name: f" /* {text} */" for name, text in texts.items()}
    about = {"mysql": " COMMENT 'a hash; the chief has 900000'"}.get(engine, "")
    head = " /* a hash; the chief has 900000 */" if engine == "sqlite" else ""
    made = f"CREATE TABLE staff{head} ({COLUMNS.format(**types, **inline)}){about};"
    made = ("CREATE TYPE mood AS ENUM ('mild', 'hot');" if engine == "postgresql" else "") + made
    made += OPEN.format(**types, **inline) + "; CREATE TABLE payroll (id INTEGER, amount INTEGER);" + ROWS
    if engine in ("postgresql", "duckdb"):
        made += f"""COMMENT ON TABLE staff IS 'a hash; the chief has 900000';
            COMMENT ON COLUMN staff.name IS '{texts["name"]}'; COMMENT ON COLUMN staff.grade IS '{texts["of_grade"]}';
            COMMENT ON COLUMN open_table.color IS '{texts["of_color"]}';
            COMMENT ON COLUMN staff.id IS 'the number';"""
    return made


@pytest.fixture(params=ENGINES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that tells hidden names and values in each place that it has for them."""
    return made_database(request, script(request.param), tmp_path)


async def all_texts(source: Source, ask: Ask) -> str:
    """Return what the prompt and the tools tell of a source."""
    schema = await source.schema()
    values = await source.values(schema)
    shown = [schema_text(schema, values, dialect=source.dialect, budget=5_000, family="any", likely=list).text]
    shown.append(json.dumps(await ask(source, "list_tables")))
    for label in schema.tables:
        shown.append(json.dumps(await ask(source, "describe_table", table=label)))
        shown.append(json.dumps(await ask(source, "describe_table", table=label, column="id")))
    return "\n".join(shown)


async def test_no_text_of_a_schema_tells_what_is_hidden(address: str, ask: Ask) -> None:
    async with await open_source(address, policy=POLICY) as source:
        shown = await all_texts(source, ask)
        labels = {column.name: column.labels for column in (await source.schema()).find("open_table").columns}
    assert [secret for secret in SECRETS if secret in shown] == []
    assert "'mild'" in shown and "'EU'" in shown, "the values of the rows that are seen"
    assert labels["color"] == ("green", "red"), "this table is seen whole"
    if "duckdb" in address or address.startswith("postgres"):
        assert "the number" in shown


async def test_without_a_policy_it_is_told(address: str, ask: Ask) -> None:
    async with await open_source(address) as source:
        shown = await all_texts(source, ask)
    assert [secret for secret in SECRETS if secret not in shown] == []


async def test_a_hidden_column_is_not_told_where_another_table_has_its_name(make_sqlite: Any) -> None:
    path = make_sqlite(
        """CREATE TABLE staff /* name is that of the bank */ (id INTEGER, name TEXT);
        CREATE TABLE shops (id INTEGER /* as staff.name has it */, name TEXT /* name of the shop */)"""
    )
    async with await open_source(str(path), policy=UserPolicy(hide={"staff": frozenset({"name"})})) as source:
        tables = (await source.schema()).tables
        assert source.hides("SUM(staff.name)") and not source.hides("MAX(shops.name)")
    assert tables["staff"].comment is None
    assert [column.comment for column in tables["shops"].columns] == [None, "name of the shop"]


async def test_notes_on_files_name_no_hidden_table(tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_text("a,b\n1,2\n")
    (tmp_path / "salaries.csv").write_text('a,b\n1,2\n3,"4\n5,6\n7,8\n9,1\n')
    (tmp_path / "broken.xlsx").write_text("none")
    for policy, names in ((None, True), (UserPolicy(hidden=frozenset({"salaries"})), False)):
        async with await open_source(str(tmp_path), policy=policy) as source:
            await source.schema()
            assert any("broken" in note for note in source.notes)
            assert any("salaries" in note for note in source.notes) is names


def test_a_withheld_enumeration_is_still_text() -> None:
    assert Column("mood", "mood", withholds_labels=True).shape == "text"
    assert Column("mood", "mood").shape == "other"
