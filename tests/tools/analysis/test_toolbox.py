# ruff: noqa: E501 - a statement reads better in one line
from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from longthread.tools.analysis.guard import Guard
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.toolbox import analysis_tools

Opened = Callable[..., Awaitable[Source]]


def test_the_tools_say_what_they_take(demo: Source) -> None:
    tools = analysis_tools(demo)
    assert [tool.name for tool in tools] == ["list_tables", "describe_table", "sample_rows", "run_sql"]
    assert all(tool.retry_safe and tool.parameters["type"] == "object" for tool in tools)
    json.dumps([dict(tool.parameters) for tool in tools])


async def test_list_tables(demo: Source, ask: Any) -> None:
    data = (await ask(demo, "list_tables"))["data"]
    assert data["tables"] == ["agencies", "launches", "missions", "payloads", "rockets", "sites"]
    assert (data["source"], data["dialect"], data["total"], data["shown"]) == ("demo", "sqlite", 6, "6 of 6")
    assert data["about"]["rockets"] == {"rows": 41, "kind": "table", "comment": "运载火箭"}
    assert data["columns"]["sites"][:3] == ["id", "name", "name_zh"]
    assert data["fingerprint"] == await demo.fingerprint()


@pytest.mark.parametrize(
    ("pattern", "tables"),
    [("rocket", ["rockets"]), ("*S", ["launches", "missions", "payloads", "rockets", "sites"]), ("%load%", ["payloads"]),
     ("none", None), ("[a-z]", None)],
)  # fmt: skip
async def test_list_tables_by_pattern(demo: Source, ask: Any, pattern: str, tables: list[str] | None) -> None:
    data = (await ask(demo, "list_tables", pattern=pattern))["data"]
    if tables is None:
        assert len(data["tables"]) == 6 and data["notes"] == [
            f"No table's name fits {pattern!r}: these are the others."
        ]
        return
    assert [name for name in data["tables"] if name != "agencies" or pattern != "*S"] == tables


async def test_describe_table(demo: Source, ask: Any) -> None:
    data = (await ask(demo, "describe_table", table="launches"))["data"]
    columns = {column["name"]: column for column in data["columns"]}
    assert (data["table_name"], data["kind"], data["rows"], data["comment"]) == ("launches", "table", 1818, "发射")
    assert data["columns_shown"] == "8 of 8"
    assert data["primary_key"] == ["id"]
    assert {"columns": ["rocket_id"], "table": "rockets", "references": ["id"]} in data["foreign_keys"]
    assert data["referenced_by"] == [{"table": "payloads", "columns": ["launch_id"], "references": ["id"]}]
    assert columns["id"]["primary_key"] and not columns["id"]["nullable"]
    assert columns["mission_id"]["nullable"]
    assert columns["outcome"]["values"] == ["Success", "Failure", "Partial failure"]
    assert columns["outcome"]["comment"].startswith("结果")
    assert columns["launch_date"]["min"].startswith("1990-")
    assert columns["cost_million_usd"]["max"] > columns["cost_million_usd"]["min"] > 0
    assert "approximate" not in data


async def test_sample_rows(demo: Source, ask: Any) -> None:
    data = (await ask(demo, "sample_rows", table="rockets", limit="3"))["data"]
    assert (data["row_count"], data["shown"], len(data["rows"])) == (3, "3 of 41", 3)
    assert (await ask(demo, "sample_rows", table="rockets"))["data"]["shown"] == "5 of 41"
    assert (await ask(demo, "sample_rows", table="rockets", limit=500))["data"]["shown"] == "20 of 41"


async def test_run_sql(demo: Source, ask: Any) -> None:
    data = (await ask(demo, "run_sql", sql="SELECT DISTINCT name FROM rockets;"))["data"]
    assert data["sql"] == "SELECT DISTINCT name FROM rockets"
    assert (data["columns"], data["row_count"], data["total"], data["shown"]) == (["name"], 41, 41, "41 of 41")
    assert (data["truncated"], data["notes"]) == (False, [])
    assert ["Long March 5"] in data["rows"]


async def test_a_long_result_is_counted_but_not_kept(demo: Source, ask: Any) -> None:
    data = (await ask(demo, "run_sql", sql="SELECT id FROM launches"))["data"]
    assert (data["row_count"], data["total"], data["shown"], data["truncated"]) == (100, 1818, "100 of 1818", True)
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c"
    data = (await ask(demo, "run_sql", sql=endless))["data"]
    assert (data["row_count"], data["total"], data["shown"]) == (100, None, "100 of more than 100000")


STALLING = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c WHERE n <= {} OR n % 1000000000 = 0"


async def test_counting_gives_up_before_the_query_does(opened: Opened, ask: Any, make_sqlite: Any) -> None:
    source = await opened(make_sqlite("CREATE TABLE t (a)"), count_seconds=0.2)
    data = (await ask(source, "run_sql", sql=STALLING.format(150)))["data"]
    assert (data["row_count"], data["total"], data["truncated"]) == (100, None, True)
    assert data["shown"] in ("100 of more than 149", "100 of more than 150")


async def test_a_query_that_stalls_shows_the_rows_it_had(opened: Opened, ask: Any, make_sqlite: Any) -> None:
    source = await opened(make_sqlite("CREATE TABLE t (a)"), seconds=0.5)
    data = (await ask(source, "run_sql", sql=STALLING.format(50)))["data"]
    assert data["row_count"] in (49, 50)
    assert data["total"] is None
    assert data["shown"] == f"{data['row_count']} of more than {data['row_count']}"
    assert data["notes"] == ["The query was stopped when its time was up. These are its first rows."]
    nothing = await ask(source, "run_sql", sql=STALLING.format(0))
    assert nothing["error"]["type"] == "sql_timeout"


@pytest.mark.parametrize(
    ("tool", "arguments", "type_", "says"),
    [
        ("describe_table", {}, "invalid_input", "`table`"),
        ("describe_table", {"table": 7}, "invalid_input", "`table`"),
        ("describe_table", {"table": "rocket"}, "unknown_table", "nearest names are: rockets"),
        ("sample_rows", {"table": "火星"}, "unknown_table", "The tables are: agencies"),
        ("sample_rows", {"table": "rockets", "limit": 0}, "invalid_input", "from 1 to 20"),
        ("sample_rows", {"table": "rockets", "limit": "many"}, "invalid_input", "from 1 to 20"),
        ("run_sql", {"sql": "  "}, "invalid_input", "`sql`"),
        ("run_sql", {"sql": "DROP TABLE rockets"}, "sql_refused", "it drops something"),
        ("run_sql", {"sql": "SELECT nme FROM rockets"}, "unknown_column", "name (of rockets)"),
        ("run_sql", {"sql": "SELECT * FROM rocket"}, "unknown_table", "nearest names are: rockets"),
        ("run_sql", {"sql": "SELECT r.nam FROM rockets r"}, "unknown_column", "name (of r)"),
    ],
)
async def test_errors_say_what_to_do(
    demo: Source, ask: Any, tool: str, arguments: dict[str, Any], type_: str, says: str
) -> None:
    observation = await ask(demo, tool, **arguments)
    assert observation["ok"] is False
    assert observation["error"]["type"] == type_
    assert says in observation["error"]["message"]


@pytest.mark.parametrize("name", ['"rockets"', "Rockets", "`rockets`", "[rockets]", " rockets; "])
async def test_a_table_is_found_however_it_is_written(demo: Source, ask: Any, name: str) -> None:
    assert (await ask(demo, "sample_rows", table=name))["data"]["table_name"] == "rockets"


WEIRD = ['say "hi"', "two words", "运载 火箭", "select", "a.b", "it's", "100%", "semi;colon", "-- x", "tab\there"]


async def test_weird_names_work(opened: Opened, ask: Any, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "weird.sqlite")) as connection:
        for name in WEIRD:
            quoted = name.replace('"', '""')
            connection.execute(f'CREATE TABLE "{quoted}" ("{quoted}" TEXT PRIMARY KEY, "order" INT)')
            connection.execute(f'INSERT INTO "{quoted}" VALUES (?, 1)', (name,))
        connection.commit()
    source = await opened(tmp_path / "weird.sqlite")
    assert set((await ask(source, "list_tables"))["data"]["tables"]) == set(WEIRD)
    for name in WEIRD:
        quoted = name.replace('"', '""')
        described = (await ask(source, "describe_table", table=name))["data"]
        assert described["columns"][0]["name"] == name
        assert described["columns"][0]["distinct"] == 1
        assert (await ask(source, "sample_rows", table=name))["data"]["rows"] == [[name, 1]]
        data = (await ask(source, "run_sql", sql=f'SELECT "{quoted}" FROM "{quoted}"'))["data"]
        assert data["rows"] == [[name]]


async def test_a_table_of_200_columns(opened: Opened, ask: Any, make_sqlite: Any) -> None:
    columns = ", ".join(f"column_{number} TEXT" for number in range(200))
    rows = [tuple(f"value {row} {number}" * 5 for number in range(200)) for row in range(50)]
    source = await opened(make_sqlite(f"CREATE TABLE wide ({columns})", wide=rows))
    described = (await ask(source, "describe_table", table="wide"))["data"]
    assert (len(described["columns"]), described["columns_shown"]) == (200, "200 of 200")
    data = (await ask(source, "run_sql", sql="SELECT * FROM wide"))["data"]
    assert len(data["columns"]) == 200
    assert 1 <= data["row_count"] < 50
    assert data["shown"] == f"{data['row_count']} of 50"
    assert "bytes" in data["notes"][-1]
    assert len(json.dumps(data["rows"], ensure_ascii=False).encode()) <= 66_000


async def test_a_row_larger_than_an_observation_is_shown_cut(opened: Opened, ask: Any, make_sqlite: Any) -> None:
    columns = ", ".join(f"c{number} TEXT" for number in range(500))
    source = await opened(make_sqlite(f"CREATE TABLE wide ({columns})", wide=[tuple("长" * 3000 for _ in range(500))]))
    data = (await ask(source, "run_sql", sql="SELECT * FROM wide"))["data"]
    assert data["row_count"] == 1
    assert "500 long values were cut" in data["notes"][0]
    assert len(json.dumps(data, ensure_ascii=False).encode()) < 70_000
    assert data["rows"][0][0].endswith("… (3000 characters)")


async def test_a_cell_of_ten_million_characters(opened: Opened, ask: Any, make_sqlite: Any) -> None:
    source = await opened(make_sqlite("CREATE TABLE t (id INTEGER, text TEXT)", t=[(1, "火" * 10_000_000), (2, "x")]))
    data = (await ask(source, "run_sql", sql="SELECT * FROM t"))["data"]
    assert data["rows"][0][1].endswith("… (10000000 characters)")
    assert len(data["rows"][0][1]) < 2_100
    assert data["notes"] == ["1 long value was cut; each says how long it is."]
    lengths = (await ask(source, "run_sql", sql="SELECT length(text) FROM t"))["data"]["rows"]
    assert lengths == [[10_000_000], [1]]
    for tool in ("describe_table", "sample_rows"):
        observation = await ask(source, tool, table="t")
        assert observation["ok"]
        assert len(json.dumps(observation)) < 10_000


async def test_a_schema_of_1000_tables(opened: Opened, ask: Any, make_sqlite: Any) -> None:
    script = "".join(f"CREATE TABLE t{n} (id INTEGER PRIMARY KEY, x REFERENCES t{n // 2}(id));" for n in range(1000))
    source = await opened(make_sqlite(f"BEGIN;{script}COMMIT;"))
    started = time.monotonic()
    likely = (await ask(source, "list_tables"))["data"]
    assert (likely["total"], likely["shown"], len(likely["tables"])) == (1000, "20 of 1000", 20)
    data = (await ask(source, "list_tables", pattern="t*"))["data"]
    assert (data["total"], data["shown"], len(data["tables"])) == (1000, "500 of 1000", 500)
    assert "columns" not in data
    assert len(json.dumps(data)) < 64_000
    assert (await ask(source, "list_tables", pattern="t99"))["data"]["shown"] == "11 of 11"
    assert (await ask(source, "describe_table", table="t999"))["data"]["foreign_keys"][0]["table"] == "t499"
    await source.fingerprint()
    assert time.monotonic() - started < 5


async def test_statistics_of_a_big_table_are_a_sample_and_say_so(opened: Opened, ask: Any, make_sqlite: Any) -> None:
    rows = [(n, f"kind {n % 3}", n * 0.5) for n in range(5_000)]
    path = make_sqlite("CREATE TABLE t (id INTEGER, kind TEXT, price REAL)", t=rows)
    data = (await ask(await opened(path, statistics_cells=3_000), "describe_table", table="t"))["data"]
    assert (data["rows"], data["approximate"], data["statistics"]) == (5_000, True, "from the first 1000 rows")
    assert data["columns"][0]["max"] == 999
    exact = (await ask(await opened(path), "describe_table", table="t"))["data"]
    assert "approximate" not in exact
    assert exact["columns"][0]["max"] == 4_999
    assert exact["columns"][1]["values"] == ["kind 0", "kind 1", "kind 2"]


async def test_statistics_stop_in_time(opened: Opened, ask: Any, make_sqlite: Any) -> None:
    source = await opened(
        make_sqlite(
            "CREATE VIEW slow AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n, n AS m FROM c"
        ),
        statistics_seconds=0.4,
    )
    started = time.monotonic()
    data = (await ask(source, "describe_table", table="slow"))["data"]
    assert time.monotonic() - started < 3
    assert (data["kind"], data["rows"], data["approximate"]) == ("view", None, True)
    assert (await ask(source, "list_tables"))["data"]["about"]["slow"]["rows"] is None
    assert (await ask(source, "sample_rows", table="slow", limit=2))["data"]["shown"] == "2 of many"


async def test_the_fingerprint_follows_the_schema_and_not_the_rows(opened: Opened, make_sqlite: Any) -> None:
    path = make_sqlite("CREATE TABLE t (a INTEGER)")
    source = await opened(path)
    first = await source.fingerprint()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
        assert await source.fingerprint() == first
        connection.execute("ALTER TABLE t ADD COLUMN b TEXT")
        second = await source.fingerprint()
        assert second != first
        connection.execute("CREATE TABLE u (a INTEGER REFERENCES t(a))")
        assert await source.fingerprint() not in (first, second)
    assert await (await opened(path)).fingerprint() == await source.fingerprint()


async def test_a_replaced_file_is_noticed(opened: Opened, ask: Any, make_sqlite: Any) -> None:
    path = make_sqlite("CREATE TABLE t (a INTEGER)")
    source = await opened(path)
    first = await source.fingerprint()
    make_sqlite("CREATE TABLE other (a INTEGER)", name="new.sqlite").replace(path)
    assert await source.fingerprint() != first
    assert (await ask(source, "list_tables"))["data"]["tables"] == ["other"]


async def test_checking_a_statement_keeps_nobody_waiting(
    demo: Source, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(guard: Guard, sql: str, **known: Any) -> str:
        time.sleep(0.5)
        return sql

    monkeypatch.setattr(Guard, "check", slow)
    asked = asyncio.create_task(ask(demo, "run_sql", sql="SELECT 1"))
    longest, before = 0.0, time.monotonic()
    while not asked.done():
        await asyncio.sleep(0.01)
        longest, before = max(longest, time.monotonic() - before), time.monotonic()
    assert asked.result()["ok"]
    assert longest < 0.4


async def test_a_statement_of_any_length_is_answered_at_once(demo: Source, ask: Any) -> None:
    started = time.monotonic()
    refused = await ask(demo, "run_sql", sql="SELECT " + ", ".join(["abs(1)"] * 20_000))
    assert refused["error"]["type"] == "sql_refused"
    assert "the limit is 20000" in refused["error"]["message"]
    assert time.monotonic() - started < 1
