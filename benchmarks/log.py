"""The log beside what else keeps a conversation: time, bytes and loading, side by side in one run.

    python benchmarks/log.py                     # everything, about ten minutes
    python benchmarks/log.py --quick --json      # less and smaller; JSON lines, the last one the ratios

PostgreSQL is the server of LONGTHREAD_TEST_POSTGRES_URL, or the embedded one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import agent
import lag
import report
import short
import tail
from databases import Databases, databases
from savers import NAMES, Race

PARTS = ("turn", "short", "lag", "agent", "tail", "disk")


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rounds: Mapping[int, int]
    """Rounds of the savers by the number of turns in the thread."""
    savers: tuple[str, ...]
    at: int
    """The number of turns at which savers are compared in ratios."""
    agent_turns: tuple[int, ...]
    agent_rounds: int
    grown: tuple[int, ...]
    """Turns that the analyst really makes to see what they leave on disk: the last number, or an earlier one of these
    when the run has taken `seconds` by then."""
    short: int
    """Rounds on short threads."""
    lag: tuple[int, int]
    """Messages of the states of an event loop's graphs, and turns of each."""
    tail: int
    """Entries of the thread whose end is loaded."""
    since: int | None = None
    """From so many turns on, what is left on disk is taken to go on as it does until `grown`."""
    seconds: float = math.inf
    loads: tuple[str, ...] = tuple(NAMES)
    """The savers by which threads are loaded."""
    behind: bool = True
    """Whether what goes on behind a turn, indexing and pruning, goes on: on the longest thread that takes a while."""


FULL = Sizes(
    {10: 9, 100: 7, 1000: 7, 5000: 3}, tuple(NAMES), 1000, (10, 100, 1000, 5000), 6, (2000,), 20, (300, 20), 100_000
)
QUICK = Sizes(
    {1000: 3},
    ("longthread", "stock", "floor"),
    1000,
    (10, 5000),
    3,
    (160, 224, 288),
    10,
    (300, 8),
    20_000,
    since=96,  # Runs are put together behind turns 96, 160, 224 and 288: from one end of such a cycle to another.
    seconds=40,
    loads=("longthread", "stock"),
    behind=False,
)
TINY = Sizes({4: 1}, tuple(NAMES), 4, (2, 4), 1, (4,), 1, (8, 1), 3000, since=2)


async def measure(found: Databases, sizes: Sizes, parts: Sequence[str], tell: Callable[[dict[str, Any]], None]) -> None:
    """Measure, and tell each row as it comes."""
    until = time.monotonic() + sizes.seconds
    if "turn" in parts:
        race = Race(found, sizes.savers, sizes.loads)
        try:
            await race.open()
            for length, rounds in sizes.rounds.items():
                for row in await race.run(length, rounds):
                    tell(row)
        finally:
            await race.close()
    later: dict[str, Callable[[], Any]] = {
        "short": lambda: short.turns(found, sizes.short),
        "lag": lambda: lag.loops(found, *sizes.lag),
        "agent": lambda: agent.turns(found, sizes.agent_turns, sizes.agent_rounds, behind=sizes.behind),
        "tail": lambda: tail.measure(found, sizes.tail, 15),
        "disk": lambda: agent.disk(found, sizes.grown, since=sizes.since, until=until),
    }
    for part, work in later.items():
        for row in await work() if part in parts else ():
            tell(row)


async def main(arguments: argparse.Namespace) -> None:
    sizes = TINY if arguments.tiny else QUICK if arguments.quick else FULL
    started = time.monotonic()
    rows: list[dict[str, Any]] = []

    def tell(row: dict[str, Any]) -> None:
        rows.append(row)
        if arguments.json:
            print(json.dumps(row), flush=True)
        else:
            _say(f"{time.monotonic() - started:4.0f} s  {json.dumps(row)}")

    with databases() as found:
        if found.missing:
            _say(found.missing)
        tell(_about(found))
        await measure(found, sizes, arguments.only or PARTS, tell)
    if arguments.rows:
        arguments.rows.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    if arguments.plot:
        report.plot(rows, arguments.plot)
    ratios = report.ratios(rows, at=sizes.at)
    if arguments.json:
        print(json.dumps({"measured": "ratios", "seconds": round(time.monotonic() - started)} | ratios))
    else:
        print(report.text(rows, ratios))
    print(json.dumps({name: ratios.get(name, {}) for name in report.LAST_LINE}))


def _about(found: Databases) -> dict[str, Any]:
    """Where the run took place."""
    versions = {backend: found.version(backend) for backend in found.backends}
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return {"measured": "machine", "machine": machine, "load": round(os.getloadavg()[0], 1), "versions": versions}


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="fewer and smaller, within a minute")
    size.add_argument("--tiny", action="store_true", help="only to see that everything runs: its numbers say nothing")
    parser.add_argument("--json", action="store_true", help="JSON lines instead of tables")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure only this part; may be repeated")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="also write the JSON lines to a file")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw an SVG")
    return parser


if __name__ == "__main__":
    asyncio.run(main(_parser().parse_args()))
