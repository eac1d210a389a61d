"""Query tools against real databases: they find what they should, and no argument does more than that."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from tests import mysqlserver
from tests.engines import ENGINES

from longthread.errors import SourceNotFound, ToolInvalid
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.user_policy import UserPolicy
from longthread.tools.tool import Observation
from longthread.tools.types.query import build, check

PRINTED = "SELECT * FROM data WHERE content ILIKE '%{{query}}%' LIMIT {{limit}}"
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "Search query"},
        "limit": {"type": "integer", "default": 10},
    },
    "required": ["query"],
}
ROWS = [(1, "AI agents"), (2, "100% of it"), (3, "1000 of it"), (4, "王芳's a_b"), (5, "axb"), (6, r"C:\x")]
SCRIPT = "CREATE TABLE data (id INTEGER, content TEXT); CREATE TABLE secrets (word TEXT);"


@dataclass(frozen=True)
class Definition:
    implementation: dict[str, Any]
    parameters: dict[str, Any] = field(default_factory=lambda: PARAMETERS)
    name: str = "find_data"
    description: str = "Finds data."


def of(sql: str = PRINTED, **more: Any) -> dict[str, Any]:
    return {"type": "query", "database": "main", "sql_template": sql} | more


def in_sqlite(path: Path) -> str:
    with closing(sqlite3.connect(path / "made.sqlite")) as connection:
        connection.executescript(SCRIPT)
        connection.executemany("INSERT INTO data VALUES (?, ?)", ROWS)
        connection.execute("INSERT INTO secrets VALUES ('hush')")
        connection.commit()
    return str(path / "made.sqlite")


def in_duckdb(path: Path) -> str:
    with duckdb.connect(str(path / "made.duckdb")) as connection:
        connection.execute(SCRIPT)
        connection.executemany("INSERT INTO data VALUES (?, ?)", ROWS)
        connection.execute("INSERT INTO secrets VALUES ('hush')")
    return str(path / "made.duckdb")


def in_postgresql(url: str) -> str:
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(SCRIPT.encode())
        cursor.executemany("INSERT INTO data VALUES (%s, %s)", ROWS)
        cursor.execute("INSERT INTO secrets VALUES ('hush')")
    return url


def in_mysql(url: str) -> str:
    mysqlserver.run(url, SCRIPT + "INSERT INTO secrets VALUES ('hush')")
    with closing(mysqlserver.connected(url)) as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO data VALUES (%s, %s)", ROWS)
    return url


@pytest.fixture(params=ENGINES)
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return in_postgresql(request.getfixturevalue("postgres_url"))
    if request.param == "mysql":
        return in_mysql(request.getfixturevalue("mysql_url"))
    return in_sqlite(tmp_path) if request.param == "sqlite" else in_duckdb(tmp_path)


Open = Callable[..., Awaitable[Source]]


@pytest.fixture
async def main(spec: str) -> AsyncIterator[Open]:
    """Opens the source, which every tool knows as `main`."""
    opened: list[Source] = []

    async def call(policy: UserPolicy | None = None, **limits: Any) -> Source:
        opened.append(await open_source(spec, limits=Limits(**limits), policy=policy))
        return opened[-1]

    yield call
    for source in opened:
        await source.close()


async def ask(source: Source, implementation: dict[str, Any], **arguments: Any) -> Observation:
    async def sources(name: str) -> Source:
        if name != "main":
            raise SourceNotFound(source=name)
        return source

    parameters = arguments.pop("parameters", PARAMETERS)
    return await build(Definition(implementation, parameters), sources).call(arguments)


def ids(observation: Observation) -> list[int]:
    assert observation["ok"], observation
    return sorted(row[0] for row in observation["data"]["rows"])


async def test_the_documents_tool_runs_as_it_is_printed(main: Open) -> None:
    check(of(), PARAMETERS)
    source = await main()
    found = await ask(source, of(), query="AGENTS")
    assert found["data"]["rows"] == [[1, "AI agents"]]
    assert found["data"]["columns"] == ["id", "content"]
    assert found["data"]["shown"] == "1 of 1"
    assert ids(await ask(source, of(), query="王芳's")) == [4]
    assert len(ids(await ask(source, of(), query="", limit=2))) == 2
    assert await ask(source, of(), query=5) == {
        "ok": False,
        "error": {
            "type": "arguments_invalid",
            "message": "The call of find_data was not made. `query` must be of type string, and is 5.",
        },
    }


@pytest.mark.parametrize(
    ("query", "found"), [("0%", [2]), ("a_b", [4]), ("\\", [6]), ("%", [2]), ("_", [4]), ("\\%", []), ("%%", [])]
)
async def test_wildcards_are_themselves(main: Open, query: str, found: list[int]) -> None:
    assert ids(await ask(await main(), of(), query=query)) == found


INJECTIONS = [
    "' OR '1'='1",
    "'; DROP TABLE data; --",
    "' UNION SELECT 1, word FROM secrets --",
    "%' OR 1=1 --",
    "\\' OR 1=1 --",
    "\\",
    "'' OR 1=1",
    "x' ESCAPE '!' OR 1=1 --",
    "$1",
    ":p1",
    "?",
    "%s",
    "{{limit}}",
    "${SECRET}",
    "*/ UNION SELECT 1, word FROM secrets /*",
    "\n-- x\nUNION SELECT 1, word FROM secrets",
    "'||(SELECT word FROM secrets)||'",
    "$$; DROP TABLE data; $$",
    "E'\\x27'",
    "U&'\\0027'",
    "ʼ OR 1=1 --",
    "＇ OR 1=1 --",
    "' || pg_sleep(10) || '",
    "'; COPY data TO '/tmp/x'; --",
    "' OR content LIKE '%",
    '" OR 1=1 --',
    "`; DROP TABLE data",
    "'/**/OR/**/1=1#",
    "CHAR(39) OR 1=1",
    "0x27204f5220313d31",
    "' LIMIT 0 OFFSET 0; PRAGMA writable_schema=1; --",
    "'; ATTACH 'x.db' AS x; --",
    "' AND randomblob(1000000000) --",
]
TEMPLATES = [
    PRINTED,
    "SELECT * FROM data WHERE content = {{query}}",
    "SELECT * FROM data WHERE content = '{{query}}' OR content = 'a {{query}} b'",
    "SELECT * FROM data WHERE lower({{query}}) = content",
]


@pytest.mark.parametrize("template", TEMPLATES)
async def test_what_an_argument_says_is_never_sql(main: Open, template: str) -> None:
    source = await main()
    for text in INJECTIONS:
        found = await ask(source, of(template), query=text)
        if found["ok"]:
            assert found["data"]["rows"] == ([[6, r"C:\x"]] if text == "\\" and template == PRINTED else []), text
        assert "hush" not in str(found)
    assert ids(await ask(source, of("SELECT * FROM data"), query="")) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("limit", ["1; DROP TABLE data", "1 UNION SELECT 1, 'x'", "ALL", "NULL", None, True, 1.5, [1]])
async def test_a_limit_is_a_number(main: Open, limit: object) -> None:
    found = await ask(await main(), of(), query="", limit=limit)
    assert found["error"]["type"] == "arguments_invalid"


@pytest.mark.parametrize("limit", [-1, 0, 2**63 - 1, 2**63, -(2**200)])
async def test_odd_limits_are_answers_or_refusals(main: Open, limit: int) -> None:
    found = await ask(await main(), of(), query="", limit=limit)
    assert found["ok"] or found["error"]["type"] in {"arguments_invalid", "sql_failed"}
    if limit == 2**63:
        assert found["error"]["message"].startswith("The call of find_data was not made.")


@pytest.mark.parametrize("query", ["nul\0nul", "\ud800", "x" * 1_000_000])
async def test_a_text_that_cannot_be_sent_is_an_observation(main: Open, query: str) -> None:
    found = await ask(await main(), of(), query=query)
    assert found["error"]["type"] in {"sql_refused", "arguments_invalid"}


async def test_every_type_comes_as_it_is(main: Open) -> None:
    kinds = {"s": "string", "i": "integer", "n": "number", "b": "boolean", "z": ["null", "string"]}
    parameters = {"properties": {name: {"type": kind} for name, kind in kinds.items()}}
    sql = (
        "SELECT id FROM data WHERE id = {{i}} AND id < {{n}} AND {{b}} AND CAST({{z}} AS CHAR) IS NULL AND {{s}} = 'x'"
    )
    given = {"s": "x", "i": 3, "n": 3.5, "b": True, "z": None, "parameters": parameters}
    assert ids(await ask(await main(), of(sql), **given)) == [3]
    assert ids(await ask(await main(), of(sql), **(given | {"n": 0.5}))) == []


async def test_a_list_stands_in_in(main: Open) -> None:
    parameters = {"properties": {"ids": {"type": "array", "items": {"type": "integer"}}}, "required": ["ids"]}
    texts = {"properties": {"ids": {"type": "array", "items": {"type": "string"}}}, "required": ["ids"]}
    source, sql = await main(), "SELECT id FROM data WHERE id IN ({{ids}})"
    assert ids(await ask(source, of(sql), ids=[1, 3, 9], parameters=parameters)) == [1, 3]
    assert ids(await ask(source, of(sql), ids=[], parameters=parameters)) == []
    sql = "SELECT id FROM data WHERE content NOT IN ('axb', {{ids}})"
    assert ids(await ask(source, of(sql), ids=["x'y", "') OR 1=1 --", "AI agents"], parameters=texts)) == [2, 3, 4, 6]
    assert "20000" in str(await ask(source, of(sql), ids=["x" * 50] * 1000, parameters=texts))


async def test_a_function_of_the_databases_own_is_looked_for_in_the_source(main: Open) -> None:
    own = of("SELECT own_function(id) FROM data WHERE content = {{query}}")
    check(own, PARAMETERS)
    found = await ask(await main(), own, query="x")
    assert found["error"]["type"] == "sql_refused"
    assert "own_function" in found["error"]["message"]


async def test_rows_and_bytes_are_capped(main: Open) -> None:
    found = await ask(await main(rows=3), of(), query="")
    assert (found["data"]["row_count"], found["data"]["shown"], found["data"]["truncated"]) == (3, "3 of 6", True)
    found = await ask(await main(), of(max_rows=2), query="")
    assert (found["data"]["row_count"], found["data"]["shown"]) == (2, "2 of 6")
    found = await ask(await main(bytes=60), of(), query="")
    assert found["data"]["row_count"] < 6
    assert "into 60 bytes" in " ".join(found["data"]["notes"])


async def test_a_value_that_says_how_much_is_built_is_judged(main: Open) -> None:
    parameters = {"properties": {"n": {"type": "integer"}}}
    sql = "SELECT repeat('x', {{n}}) FROM data" if (await main()).dialect != "sqlite" else "SELECT zeroblob({{n}})"
    found = await ask(await main(), of(sql), n=2_000_000_000, parameters=parameters)
    assert found["error"]["type"] == "sql_refused"


async def test_time_is_capped(main: Open) -> None:
    sql = (
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) "
        "SELECT max(n) FROM c WHERE n <> {{limit}} AND CAST(n AS CHAR) <> {{query}}"
    )
    found = await ask(await main(seconds=1), of(sql), query="x")
    assert found["error"]["type"] in {"sql_timeout", "sql_too_large"}


async def test_a_policy_holds_for_the_tool(main: Open) -> None:
    policy = UserPolicy(values={"most": 4}, rows={"data": "id <= :most"}, hidden=frozenset({"secrets"}))
    source = await main(policy)
    assert ids(await ask(source, of(), query="")) == [1, 2, 3, 4]
    assert ids(await ask(source, of(), query="axb")) == []
    assert ids(await ask(source, of(), query="0%")) == [2]
    reading = await ask(source, of("SELECT word FROM secrets WHERE word <> {{query}}"), query="x")
    assert reading["error"]["type"] == "unknown_table"


async def test_calls_at_once_do_not_mix(main: Open) -> None:
    source = await main()
    found = await asyncio.gather(*(ask(source, of("SELECT id FROM data WHERE id = {{limit}}"), query="", limit=n)
                                   for n in range(1, 7)))  # fmt: skip
    assert [ids(one) for one in found] == [[1], [2], [3], [4], [5], [6]]


async def test_an_unknown_source_is_an_observation(main: Open) -> None:
    found = await ask(await main(), of() | {"database": "other"}, query="x")
    assert found["error"]["type"] == "source_not_found"


async def test_an_unknown_column_is_one_with_the_nearest_names(main: Open) -> None:
    found = await ask(await main(), of("SELECT contents FROM data WHERE id = {{limit}}"), query="x")
    assert found["error"]["type"] == "unknown_column"
    assert "content" in found["error"]["message"]


@pytest.mark.parametrize(
    ("implementation", "said"),
    [
        (of(sql="DELETE FROM data WHERE content = {{query}}"), "it deletes rows"),
        (of(sql="SELECT 1; DROP TABLE data"), "not one statement"),
        (of(sql="SELECT pg_read_file({{query}})"), "not one that is known to only read"),
        (of(sql="SELECT load_extension({{query}})"), "not one that is known to only read"),
        (of(sql="x" * 10_001), "more than 10000 characters"),
        (of(sql=""), "`sql_template` is missing"),
        ({"type": "query", "sql_template": PRINTED}, "`database` is missing"),
        (of(databse="x"), "`databse` is no field"),
        (of(max_rows=0), "`max_rows`"),
        (of(max_rows=True), "`max_rows`"),
        (of() | {"type": "api"}, "its `type` is not query"),
    ],
)
def test_what_cannot_be_used_is_refused_when_it_is_applied(implementation: dict[str, Any], said: str) -> None:
    with pytest.raises(ToolInvalid) as caught:
        check(implementation, PARAMETERS)
    assert said in str(caught.value)


def test_a_template_is_checked_in_the_dialect_of_its_source() -> None:
    only = "SELECT content FROM data WHERE content GLOB '*{{query}}*'"
    check(of(only), PARAMETERS, dialect="sqlite")
    check(of(only), PARAMETERS)
    with pytest.raises(ToolInvalid):
        check(of("SELECT a FROM data WHERE a = {{query}} QUALIFY {{limit}}"), PARAMETERS, dialect="sqlite")
