"""Notes about values that a query filters by and that occur nowhere, on each engine."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import duckdb
import psycopg
import pytest
from tests import mysqlserver

from longthread.tools.analysis import nearest
from longthread.tools.analysis.nearest import close_values, notes_of
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.user_policy import UserPolicy

ROWS = [("United States", "paid"), ("México", "open"), ("São Tomé", "Paid "), ("中国大陆", "paid"), ("France", "open")]
SETUP = [
    "CREATE TABLE customers (country VARCHAR(50), status VARCHAR(20), n INT)",
    *(f"INSERT INTO customers VALUES ('{country}', '{status}', 1)" for country, status in ROWS),
]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the looks may take longer."""
    monkeypatch.setattr(nearest, "SECONDS", 60.0)


async def notes(source: Source, where: str) -> list[str]:
    return await notes_of(source, await source.schema(), f"SELECT count(*) FROM customers c WHERE {where}")


async def check(source: Source) -> None:
    [note] = await notes(source, "country = 'USA'")
    assert "No customers.country is 'USA'. The nearest values are: 'United States'" in note
    [note] = await notes(source, "c.country IN ('France', 'Mexco')")
    assert "'Mexco'" in note and "'México'" in note
    [note] = await notes(source, "country LIKE '%中国台%' AND n = 1")
    assert "is LIKE '%中国台%'" in note
    assert "中国大陆" in (await notes(source, "country = '中国'"))[0]
    assert await notes(source, "country = 'France' AND status IN ('paid', 'open') AND country LIKE 'U%'") == []
    assert await notes(source, "n = 5 OR status = '2020'") == []
    assert "France" in (await notes(source, "n IN (SELECT n FROM customers d WHERE d.country = 'Frances')"))[0]


async def test_in_sqlite(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "a.sqlite")
    connection.executescript(";".join(SETUP))
    connection.close()
    async with await open_source(str(tmp_path / "a.sqlite")) as source:
        await check(source)


async def test_in_duckdb(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        for statement in SETUP:
            connection.execute(statement)
    async with await open_source(str(tmp_path / "a.duckdb")) as source:
        await check(source)


async def test_in_postgresql(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for statement in SETUP:
            connection.execute(statement.encode())
    async with await open_source(postgres_url) as source:
        await check(source)


async def test_in_mysql(mysql_url: str) -> None:
    mysqlserver.run(mysql_url, ";".join(SETUP))
    async with await open_source(mysql_url) as source:
        await check(source)
        assert await notes(source, "country = 'FRANCE'") == [], "its collation knows no case"


async def test_what_a_policy_hides_is_not_told(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "a.sqlite")
    connection.executescript(";".join(SETUP))
    connection.close()
    policy = UserPolicy(values={"own": "open"}, rows={"customers": "status = :own"})
    async with await open_source(str(tmp_path / "a.sqlite"), policy=policy) as source:
        [note] = await notes(source, "country = 'USA'")
        assert "United" not in note and "México" in note


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("USA", "United States"),
        ("U.S.", "United States"),
        ("united  states", "United States"),
        ("Mexico", "México"),
        ("sao tome", "São Tomé"),
        ("paid", "Paid "),
        ("中国", "中国大陆"),
        ("Unted States", "United States"),
    ],
)
def test_values_that_are_near(wanted: str, near: str) -> None:
    assert close_values(wanted, ["xyzzy", near, "Qatar"]) == [near]
