"""What the tools that users define cost: milliseconds a call, without what they ask for.

    python benchmarks/tools.py                     # 500 calls of each
    python benchmarks/tools.py --quick --json      # 50; the last line is a JSON object

`code` is a function that returns its argument, in a sandbox that is warm: start, call and result. `query` is one row of
a SQLite file in its worker, `judged` what of that is looking at the statement. `api` is a request to this process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source
from longthread.tools.confinement import lacking
from longthread.tools.secrets import Secrets
from longthread.tools.tool import DefinedTool
from longthread.tools.types import api, code, query
from longthread.tools.types.query import compile_template

PROPERTIES = {"query": {"type": "string"}, "limit": {"type": "integer", "default": 10}}
PARAMETERS = {"type": "object", "properties": PROPERTIES, "required": ["query"]}
SQL = "SELECT * FROM data WHERE content ILIKE '%{{query}}%' LIMIT {{limit}}"
CODE = "def execute(query, limit=10):\n    return [query, limit]"
Call = Callable[[], Awaitable[Any]]


def measured(implementation: dict[str, Any]) -> DefinedTool:
    return DefinedTool("measured", "", PARAMETERS, implementation)


async def timed(call: Call, count: int) -> dict[str, float]:
    times = []
    for number in range(count + 5):
        started = time.perf_counter()
        found = await call()
        if number >= 5:  # the first ones warm up
            times.append((time.perf_counter() - started) * 1000)
        assert found is None or found["ok"], found
    return {"median_ms": round(median(times), 2), "p95_ms": round(quantiles(times, n=20)[-1], 2)}


async def of_code(count: int) -> dict[str, dict[str, float]]:
    found = {}
    async with code.Interpreters(cpython=True) as interpreters:
        for runtime in ("python", "cpython") if lacking() is None else ("python",):
            tool = code.build(measured({"runtime": runtime, "code": CODE}), interpreters)
            few = count if runtime == "python" else max(10, count // 10)
            found[f"code {runtime}"] = await timed(lambda tool=tool: tool.call({"query": "x"}), few)
    return found


async def of_query(count: int) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.sqlite"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE data (id INTEGER, content TEXT)")
            connection.execute("INSERT INTO data VALUES (1, 'AI agents')")
            connection.commit()
        async with await open_source(str(path)) as source:

            async def sources(name: str) -> Source:
                return source

            schema = await source.schema()
            template = compile_template(SQL, PROPERTIES, source.dialect)

            async def judging() -> None:
                statement = template.statement({"query": "agents", "limit": 10})
                source.prepare(statement.shown, schema, statement.run)

            tool = query.build(measured({"database": "main", "sql_template": SQL}), sources)
            return {
                "query": await timed(lambda: tool.call({"query": "agents"}), count),
                "query judged": await timed(judging, count),
            }


async def of_api(count: int) -> dict[str, dict[str, float]]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        made = {"endpoint": f"http://127.0.0.1:{port}/?q={{{{query}}}}", "allow_private": True}
        tool = api.build(measured(made), secrets=Secrets({}))
        return {"api": await timed(lambda: tool.call({"query": "x"}), count)}


async def main(arguments: argparse.Namespace) -> None:
    count = 50 if arguments.quick else 500
    found = await of_code(count) | await of_query(count) | await of_api(count)
    if arguments.json:
        print(json.dumps(found))
        return
    for name, figures in found.items():
        print(f"{name:14} median {figures['median_ms']:8.2f} ms   p95 {figures['p95_ms']:8.2f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    asyncio.run(main(parser.parse_args()))
