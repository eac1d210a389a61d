"""What it costs that embedded engines run in a process of their own.

    python benchmarks/worker.py                     # a small SQLite file and a CSV file
    python benchmarks/worker.py --quick --json      # less often; the last line is a JSON object

`first` is the first source of a process, which starts the nest that workers are forked from; `open`, `query`, `rows`
(100 rows of 20 columns) and `close` are medians of later ones; `kill` is how long after its time was up a statement
that heeds no interrupt was gone.
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
from statistics import median
from typing import Any

from longthread.errors import SqlTimeout
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source

COLUMNS = 20
SEARCH = "SELECT sum(instr(a.text, b.text)) FROM long a, long b"


def made(folder: Path) -> dict[str, Path]:
    """The databases to ask."""
    rows = [tuple(range(n, n + COLUMNS)) for n in range(10_000)]
    names = ", ".join(f"c{n}" for n in range(COLUMNS))
    with closing(sqlite3.connect(folder / "t.sqlite")) as connection:
        connection.execute(f"CREATE TABLE t ({names})")
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * COLUMNS)})", rows)
        connection.execute("CREATE TABLE long (text)")
        connection.execute("INSERT INTO long VALUES (?), (?)", ("a" * 6_000_000, "a" * 3_000_000 + "b"))
        connection.commit()
    (folder / "t.csv").write_text("\n".join([names, *(", ".join(map(str, row)) for row in rows)]))
    return {"sqlite": folder / "t.sqlite", "csv": folder / "t.csv"}


async def milliseconds(work: Callable[[], Awaitable[Any]]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = await work()
    return (time.perf_counter() - started) * 1000, result


async def round_of(path: Path, limits: Limits) -> dict[str, float]:
    opening, source = await milliseconds(lambda: open_source(str(path), limits=limits))
    query, _ = await milliseconds(lambda: asked(source, "SELECT 1"))
    rows, _ = await milliseconds(lambda: asked(source, "SELECT * FROM t LIMIT 100"))
    closing_, _ = await milliseconds(source.close)
    return {"open": opening, "query": query, "rows": rows, "close": closing_}


async def asked(source: Source, sql: str) -> Any:
    limits = source.limits
    return await source.work(lambda connection: connection.fetch(sql, limits, keep=100, cell=2_000))


async def killed(path: Path) -> float:
    """Milliseconds from the time that a statement had until it was gone."""
    async with await open_source(str(path), limits=Limits(seconds=0.2)) as source:
        started = time.perf_counter()
        try:
            await source.work(lambda connection: connection.query(SEARCH).first())
        except SqlTimeout:
            return (time.perf_counter() - started) * 1000 - 200
    raise RuntimeError("the statement ended by itself")


async def main(arguments: argparse.Namespace) -> None:
    rounds = 10 if arguments.quick else 50
    with tempfile.TemporaryDirectory() as folder:
        paths = made(Path(folder))
        figures = {"first_open_ms": round((await round_of(paths["sqlite"], Limits()))["open"], 1)}
        for name, path in paths.items():
            for kind, limits in (("worker", Limits()), ("inside", Limits(isolated=False))):
                found = [await round_of(path, limits) for _ in range(rounds)]
                row = {key: round(median(one[key] for one in found), 2) for key in found[0]}
                print(json.dumps({"source": name, "runs": kind, **row}), flush=True)
                figures |= {f"{name}_{kind}_{key}_ms": value for key, value in row.items()}
        figures["kill_ms"] = round(await killed(paths["sqlite"]))
    print(json.dumps(figures) if arguments.json else "\n".join(f"{name}: {value}" for name, value in figures.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="less often")
    parser.add_argument("--json", action="store_true", help="the last line is a JSON object")
    asyncio.run(main(parser.parse_args()))
