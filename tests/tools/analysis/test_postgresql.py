# ruff: noqa: E501 - a statement reads better in one line
from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from longthread.errors import SourceEmpty, SourceError, SourceLoginFailed, SourceUnreachable, SourceUnreadable
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.toolbox import analysis_tools

pytestmark = pytest.mark.postgres
Opened = Callable[..., Awaitable[Source]]

SCRIPT = """
CREATE TABLE rockets (id serial PRIMARY KEY, name text NOT NULL, "first flight" date, price numeric(10, 2), tags jsonb,
                      seen timestamptz DEFAULT 'infinity', kind bool);
COMMENT ON TABLE rockets IS '运载火箭';
COMMENT ON COLUMN rockets.name IS '名称';
CREATE TABLE launches (id int, rocket_id int REFERENCES rockets, site text);
INSERT INTO rockets (name, "first flight", price, tags, kind)
    SELECT 'rocket ' || i, date '2020-01-01' + i, i * 1.25, '{"a": [1]}', i % 2 = 0 FROM generate_series(1, 200) i;
CREATE SCHEMA archive;
CREATE TABLE archive.rockets (id int);
CREATE TABLE archive.old (id int REFERENCES public.rockets);
CREATE VIEW cheap AS SELECT name, price FROM rockets WHERE price < 10;
CREATE MATERIALIZED VIEW dear AS SELECT * FROM rockets WHERE price > 100;
CREATE TABLE parted (id int, year int) PARTITION BY RANGE (year);
CREATE TABLE parted_2020 PARTITION OF parted FOR VALUES FROM (2020) TO (2021);
INSERT INTO parted VALUES (1, 2020);
CREATE FUNCTION taxed(price numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT price * 1.2';
CREATE FUNCTION sneaky() RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN DELETE FROM rockets; RETURN 1; END $$;
"""


@pytest.fixture
async def source(postgres_url: str, opened: Opened) -> Source:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(SCRIPT.encode())
    return await opened(postgres_url, seconds=5)


async def test_the_catalog(source: Source, ask: Any) -> None:
    data = (await ask(source, "list_tables"))["data"]
    assert data["tables"] == ["cheap", "dear", "launches", "parted", "rockets", "archive.old", "archive.rockets"]
    assert data["about"]["rockets"] == {"rows": 200, "kind": "table", "comment": "运载火箭"}
    assert data["about"]["dear"]["kind"] == "view"
    described = await ask(source, "describe_table", table="public.rockets")
    assert described["error"]["type"] == "unknown_table"
    rockets = (await ask(source, "describe_table", table="Rockets"))["data"]
    columns = {column["name"]: column for column in rockets["columns"]}
    assert rockets["primary_key"] == ["id"]
    assert columns["name"]["comment"] == "名称"
    assert (columns["first flight"]["min"], columns["first flight"]["max"]) == ("2020-01-02", "2020-07-19")
    assert (columns["price"]["min"], columns["price"]["max"]) == (1.25, 250)
    assert columns["seen"]["max"] == "infinity"
    assert sorted(columns["kind"]["values"]) == [False, True]
    assert {"table": "archive.old", "columns": ["id"], "references": ["id"]} in rockets["referenced_by"]
    old = (await ask(source, "describe_table", table="archive.old"))["data"]
    assert old["foreign_keys"] == [{"columns": ["id"], "table": "rockets", "references": ["id"]}]


async def test_rows(source: Source, ask: Any) -> None:
    sql = 'SELECT name, "first flight", price, tags, seen, taxed(price) FROM rockets ORDER BY id LIMIT 1'
    data = (await ask(source, "run_sql", sql=sql))["data"]
    assert data["rows"] == [["rocket 1", "2020-01-02", 1.25, {"a": [1]}, "infinity", 1.5]]
    many = (await ask(source, "run_sql", sql="SELECT a.id FROM rockets a, rockets b"))["data"]
    assert many["shown"] == "100 of 40000"
    odd = "SELECT 'NaN'::float8, '-infinity'::date, '\\x00ff'::bytea, int4range(1, 5), interval '1 day', NULL::text[]"
    data = (await ask(source, "run_sql", sql=odd))["data"]
    assert data["rows"] == [["NaN", "-infinity", "\\x00ff", "[1,5)", "1 day", None]]
    assert (await ask(source, "run_sql", sql="SELECT '%s %d' || '%'"))["data"]["rows"] == [["%s %d%"]]
    plan = (await ask(source, "run_sql", sql="EXPLAIN ANALYZE SELECT * FROM rockets"))["data"]
    assert "Seq Scan" in plan["rows"][0][0]


async def test_errors(source: Source, ask: Any) -> None:
    missing = await ask(source, "run_sql", sql="SELECT nam FROM rockets")
    assert missing["error"]["type"] == "unknown_column"
    assert "name (of rockets)" in missing["error"]["message"]
    refused = await ask(source, "run_sql", sql="SELECT sneaky()")
    assert refused["error"]["type"] == "sql_refused"
    assert "division by zero." in (await ask(source, "run_sql", sql="SELECT 1 / 0"))["error"]["message"]


async def test_functions_of_the_database_are_told_by_more_than_their_names(
    source: Source, postgres_url: str, ask: Any
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for name in ("st_sneaky", "month"):
            connection.execute(f"CREATE FUNCTION {name}() RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1'".encode())
    for sql in ("SELECT st_sneaky()", "SELECT month()"):
        assert (await ask(source, "run_sql", sql=sql))["error"]["type"] == "sql_refused"


async def test_a_backslash_is_a_letter(postgres_url: str, opened: Opened, ask: Any) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute("CREATE TABLE t (a int)")
        connection.execute(f'ALTER DATABASE "{name}" SET standard_conforming_strings = off'.encode())
    source = await opened(postgres_url)
    sql = "SELECT '\\'' , current_setting($$port$$) --'"
    assert (await ask(source, "run_sql", sql=sql))["data"]["rows"] == [["\\' , current_setting($$port$$) --"]]


async def test_the_engine_refuses_what_the_guard_refuses(source: Source, ask: Any) -> None:
    for sql in (
        "DELETE FROM rockets",
        "SELECT sneaky()",
        "CREATE TABLE x (a int)",
        "CREATE TEMP TABLE x AS SELECT 1",
        "COMMIT; DROP TABLE rockets",
        "WITH d AS (DELETE FROM rockets RETURNING *) SELECT * FROM d",
        "SELECT nextval('rockets_id_seq')",
        "SELECT set_config('transaction_read_only', 'off', false), sneaky()",
        "SELECT * FROM rockets FOR UPDATE",
    ):
        with pytest.raises(SourceError):
            await source.work(lambda connection, sql=sql: list(connection.query(sql)))  # type: ignore[misc]
    assert (await ask(source, "run_sql", sql="SELECT count(*) FROM rockets"))["data"]["rows"] == [[200]]


async def test_settings_do_not_outlive_their_query(source: Source) -> None:
    setting = (
        "SELECT set_config('default_transaction_read_only', 'off', false), set_config('search_path', 'archive', false)"
    )
    await source.work(lambda connection: connection.query(setting).first())
    asked = "SELECT current_setting('default_transaction_read_only'), current_setting('transaction_read_only'), current_schema()"
    for _ in range(5):
        row = await source.work(lambda connection: connection.query(asked).first())
        assert tuple(row or ()) == ("on", "on", "public")


async def test_attacks_that_may_run_are_stopped(postgres_url: str, opened: Opened, source: Source) -> None:
    hurried = await opened(postgres_url, seconds=0.5)
    for sql in ("SELECT count(*) FROM generate_series(1,100000000000)", "SELECT pg_sleep(60)"):
        with pytest.raises(SourceError, match="stopped after"):
            await hurried.work(lambda connection, sql=sql: connection.query(sql).first())  # type: ignore[misc]


async def test_the_fingerprint_follows_the_schema(source: Source, postgres_url: str) -> None:
    first = await source.fingerprint()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("INSERT INTO rockets (name) VALUES ('new'); ANALYZE")
        assert await source.fingerprint() == first
        connection.execute("ALTER TABLE rockets ADD COLUMN mass int")
    assert await source.fingerprint() != first


async def test_a_session_that_was_ended_is_replaced(source: Source, postgres_url: str, ask: Any) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'longthread' AND datname = current_database()"
        )
    assert (await ask(source, "run_sql", sql="SELECT 1"))["ok"]


def ended(url: str, times: int) -> Callable[[Any], Any]:
    """Work whose session is ended under it, so many times."""
    left = iter(range(times))

    def work(connection: Any) -> Any:
        number = connection.execute("SELECT pg_backend_pid()").first()[0]
        if next(left, None) is not None:
            with psycopg.connect(url, autocommit=True) as other:
                other.execute(f"SELECT pg_terminate_backend({number}, 5000)")
        return connection.query("SELECT 1 AS n").first()[0]

    return work


async def test_sessions_that_are_ended_at_work_fail_no_call(source: Source, postgres_url: str) -> None:
    assert await asyncio.gather(*(source.work(ended(postgres_url, 1)) for _ in range(3))) == [1, 1, 1]


async def test_a_session_that_is_ended_again_is_told(source: Source, postgres_url: str) -> None:
    with pytest.raises(SourceUnreachable):
        await source.work(ended(postgres_url, 2))


async def test_an_empty_database_and_a_missing_one(postgres_url: str) -> None:
    with pytest.raises(SourceEmpty):
        await open_source(postgres_url)
    with pytest.raises(SourceUnreadable, match="does not exist. The database is not there"):
        await open_source(postgres_url.replace("longthread_test_", "longthread_missing_"))


async def test_a_source_is_opened_again_without_its_password(
    guarded_url: str, opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    source = await opened(guarded_url)
    assert "s3cret" not in source.spec and "***" not in source.spec
    with pytest.raises(
        SourceLoginFailed, match="keeps no password.*--source.*set PGPASSWORD, or write it into ~/.pgpass"
    ):
        await open_source(source.spec)
    with pytest.raises(SourceLoginFailed, match="password authentication failed") as wrong:
        await open_source(guarded_url.replace("s3cret", "wr0ng"))
    assert "wr0ng" not in str(wrong.value)
    monkeypatch.setenv("PGPASSWORD", "s3cret")
    again = await opened(source.spec)
    assert await again.fingerprint() == await source.fingerprint()


async def test_an_unknown_table_is_told_with_the_nearest(opened: Any, ask: Any, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE customers (id int)")
    found = await ask(await opened(postgres_url), "run_sql", sql="SELECT id FROM customer")
    assert "The nearest names are: customers." in found["error"]["message"]


async def test_a_statement_with_the_right_case_of_a_name_is_run(opened: Any, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE orders (\"CustomerId\" int, city text); INSERT INTO orders VALUES (7, 'Paris')"
        )
    run_sql = next(tool for tool in analysis_tools(await opened(postgres_url)) if tool.name == "run_sql")
    first = await run_sql.call({"sql": 'SELECT "customerid" FROM orders'})
    assert "CustomerId" in first["error"]["message"]
    again = await run_sql.call({"sql": 'select  "customerid" FROM Orders;'})
    assert again["error"]["type"] == "sql_repeated"
    assert (await run_sql.call({"sql": 'SELECT "CustomerId" FROM orders'}))["data"]["rows"] == [[7]]
