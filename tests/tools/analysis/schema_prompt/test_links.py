"""Keys that a database does not declare, found by names and proved by values."""

from __future__ import annotations

from typing import Any

import pytest

from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.schema_text import schema_text
from longthread.tools.analysis.schema_values import read_links
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.user_policy import UserPolicy

SCRIPT = """
CREATE TABLE users (uid INTEGER, username TEXT);
CREATE TABLE cars (id INTEGER, make TEXT);
CREATE TABLE author (aid INTEGER, name TEXT);
CREATE TABLE domain_author (aid INTEGER, did INTEGER);
CREATE TABLE state (state_name TEXT, population INTEGER);
CREATE TABLE lake (lake_name TEXT, state_name TEXT, population INTEGER);
CREATE TABLE "sbCustomer" ("sbCustId" TEXT, "sbCustName" TEXT);
CREATE TABLE "sbTransaction" ("sbTxId" TEXT, "sbTxCustId" TEXT);
CREATE TABLE sales (id INTEGER, user_id INTEGER, car_id INTEGER, stars INTEGER);
INSERT INTO users VALUES (1, 'a'), (2, 'b');
INSERT INTO cars VALUES (1, 'x'), (2, 'y');
INSERT INTO author VALUES (1, 'Ann'), (2, 'Bob');
INSERT INTO domain_author VALUES (1, 7), (1, 8), (2, 7);
INSERT INTO state VALUES ('Ohio', 3), ('Utah', 4);
INSERT INTO lake VALUES ('Erie', 'Ohio', 3), ('Bear', 'Utah', 4);
INSERT INTO "sbCustomer" VALUES ('C1', 'Ann');
INSERT INTO sales VALUES (1, 1, 1, 1), (2, 1, 9, 2);
"""


async def links_of(source: Source) -> dict[str, str]:
    schema = await source.schema()
    found = await source.work(lambda connection: read_links(connection, schema, source.dialect))
    return {
        f"{table}.{column}": f"{key.table}.{key.references[0]}"
        for table, keys in found.items()
        for column, key in keys.items()
    }


async def test_names_say_what_refers_to_what_and_values_prove_it(opened: Any, make_sqlite: Any) -> None:
    source = await opened(make_sqlite(SCRIPT))
    assert await links_of(source) == {
        "domain_author.aid": "author.aid",
        "lake.state_name": "state.state_name",
        "sales.user_id": "users.uid",
        "sbTransaction.sbTxCustId": "sbCustomer.sbCustId",  # a table without rows yet
    }  # car 9 is no car, stars are no ids, and equal populations are chance
    schema = await source.schema()
    text = schema_text(schema, await source.values(schema), dialect="sqlite", budget=5_000, family="any", likely=list)
    assert "aid INTEGER REFERENCES author (aid)" in text.text


async def test_a_declared_key_stays_what_it_is(opened: Any, make_sqlite: Any) -> None:
    script = """
    CREATE TABLE users (id INTEGER PRIMARY KEY); CREATE TABLE old_users (id INTEGER PRIMARY KEY);
    CREATE TABLE sales (user_id INTEGER REFERENCES old_users (id));
    INSERT INTO users VALUES (1); INSERT INTO old_users VALUES (1); INSERT INTO sales VALUES (1);
    """
    assert await links_of(await opened(make_sqlite(script))) == {}


async def test_what_a_policy_hides_proves_nothing(make_sqlite: Any) -> None:
    path = make_sqlite(
        "CREATE TABLE users (id INTEGER); CREATE TABLE sales (user_id INTEGER);"
        "INSERT INTO users VALUES (1), (2); INSERT INTO sales VALUES (2)"
    )
    for policy, found in (
        (UserPolicy(rows={"users": "id = 1"}), {}),
        (UserPolicy(hide={"users": frozenset({"id"})}), {}),
        (None, {"sales.user_id": "users.id"}),
    ):
        async with await open_source(str(path), policy=policy) as source:
            assert await links_of(source) == found


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
async def test_files_have_keys_too(tmp_path: Any, suffix: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        for name, rows in (
            ("users", "SELECT 1 AS id, 'a' AS name UNION ALL SELECT 2, 'b'"),
            ("sales", "SELECT 2 AS user_id"),
        ):
            connection.execute(f"COPY ({rows}) TO '{tmp_path / name}.{suffix}'")
    async with await open_source(str(tmp_path)) as source:
        assert await links_of(source) == {"sales.user_id": "users.id"}
