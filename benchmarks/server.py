"""The server under live, watched runs: what is lost, how long the first event takes, and what each thing costs.

A run is one query and then text, a chunk a second. Real `longthread serve` processes on a real store; the provider is
the emulator's lean mode in a process of its own; this process is the clients. All share the machine's processors.

    python benchmarks/server.py                  # both backends, one and two processes, 1, 100 and 1,000 live: an hour
    python benchmarks/server.py --backend postgres --processes 2 --live 1000
    python benchmarks/server.py --peer           # what the `openai` client alone computes for a chunk, of 300 streams
    python benchmarks/server.py --quick --json   # 300 live on PostgreSQL and two processes; the last line sums it up

CPU is that of the servers and of the processes that they start. That of PostgreSQL and of the clients is told beside.
PostgreSQL is the server of LONGTHREAD_TEST_POSTGRES_URL, or the embedded one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent import make_source
from databases import Database, Databases, databases
from processes import Server, started
from server_load import Load, idle, in_pairs, live, peer, takeover, turns

EMULATOR = (sys.executable, "-m", "longthread_testing.emulator", "--lean")
COMMAND = "from longthread.cli.start import main; main()"
KEYS = (
    *("runs", "lost", "first_event_p95_ms", "kb_per_conversation", "turns_per_s", "cpu_ms_per_turn"),
    *("us_per_chunk", "takeover_p95_s", "reads_per_watcher_s"),
)
GOALS = {
    "lost": 0,
    "first_event_p95_ms": 500,
    "kb_per_conversation": 150,
    "cpu_ms_per_turn": 60,
    "us_per_chunk": 250,
    "takeover_p95_s": 3,
    "reads_per_watcher_s": 0,
}
"""The most that each may be."""
WATCHED_PERCENT = 10
"""The most CPU that a turn may take more because somebody watches it."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    live: int
    rate: float
    """Arrivals a second."""
    pieces: int
    """Chunks of an answer, and the seconds that it takes."""
    seconds: float
    """How long turns are had of which CPU and rate are measured, watched and unwatched."""
    turns: int = 24
    """So many, before those of the other kind have their turn."""
    at_once: int = 8
    watchers: int = 200
    window: float = 4.0
    """Seconds in which the reads of idle watchers are counted."""
    orphans: int = 20
    """Runs whose process is killed."""


QUICK = Sizes(live=300, rate=6, pieces=60, seconds=15)
TINY = Sizes(live=3, rate=6, pieces=3, seconds=0, turns=2, at_once=2, watchers=4, window=1.0, orphans=2)


def full(count: int) -> Sizes:
    """Sizes in which `count` runs are live at the same time: the last arrives before the first ends."""
    return Sizes(live=count, rate=8, pieces=max(60, 5 + count // 8), seconds=30, window=12.0)


async def measure(load: Load, sizes: Sizes, tell: Any) -> dict[str, Any]:
    """Measure everything on servers that are up; return the last line."""
    await turns(load, 4 * len(load.servers), sizes.at_once, watched=True)  # what is imported and opened at first
    alone, watched = await in_pairs(load, sizes.turns, sizes.at_once, seconds=sizes.seconds)
    tell({"measured": "turns that nobody watches", **alone})
    tell({"measured": "turns, watched", **watched})
    found = await live(load, sizes.live, sizes.rate, sizes.pieces)
    tell({"measured": "live", **found})
    reads = await idle(load, sizes.watchers, sizes.window)
    tell({"measured": "idle watchers", **reads})
    orphans = await takeover(load, sizes.orphans) if len(load.servers) > 1 else {"takeover_p95_s": None}
    tell({"measured": "kill -9", **orphans})
    every = alone | found | reads | orphans
    last = {name: every[name] for name in KEYS}
    more = round(100 * (watched["cpu_ms_per_turn"] / alone["cpu_ms_per_turn"] - 1))
    missed = [name for name, most in GOALS.items() if last[name] is None or last[name] > most]
    missed += ["watched_percent"] if more > WATCHED_PERCENT else []
    goals = {"goals": {**GOALS, "watched_percent": WATCHED_PERCENT}, "watched_percent": more, "missed": missed}
    tell({"measured": "goals", **goals})
    return last


@contextmanager
def served(folder: Path, database: Database, processes: int) -> Iterator[Load]:
    """Servers on the database, warm."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LONGTHREAD_", "LLM_"))}
    source = make_source(folder)
    with ExitStack() as opened:
        emulator = opened.enter_context(started(EMULATOR, env | {"HOME": str(folder)}))
        own = {"HOME": str(folder), "LLM_BASE_URL": f"{emulator.url}/v1", "LONGTHREAD_MODEL": "openai:lean-1x0"}
        command = [sys.executable, "-c", COMMAND, "serve", "--port", "0", "--source", source]
        command += ["--database", database.address]
        servers: list[Server] = []
        for _ in range(processes):
            servers.append(opened.enter_context(started(command, env | own, says="Longthread is at")))
        try:
            yield Load(servers, database)
        finally:
            for server in servers:  # runs are still live: there is nothing to wait for
                server.kill()


def combination(made: Databases, backend: str, processes: int, sizes: Sizes, tell: Any) -> dict[str, Any]:
    tell({"measured": "where", "backend": backend, "processes": processes, "live": sizes.live, "rate": sizes.rate})
    with (
        tempfile.TemporaryDirectory(prefix="bench") as folder,
        served(Path(folder), made.make(backend, "server"), processes) as load,
        asyncio.Runner(loop_factory=_loop) as runner,
    ):
        return runner.run(measure(load, sizes, tell))


def _loop() -> asyncio.AbstractEventLoop:
    import uvloop

    return uvloop.new_event_loop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="300 live runs on PostgreSQL and two processes, 150 s")
    size.add_argument("--tiny", action="store_true", help="only to see that everything runs: its numbers say nothing")
    size.add_argument("--peer", action="store_true", help="the openai client in the place of the server")
    parser.add_argument("--json", action="store_true", help="JSON lines alone")
    parser.add_argument("--backend", choices=("sqlite", "postgres"), help="this one alone")
    parser.add_argument("--processes", type=int, choices=(1, 2), help="so many alone")
    parser.add_argument("--live", type=int, help="so many live runs alone")
    args = parser.parse_args()

    def tell(row: Mapping[str, Any]) -> None:
        print(json.dumps(row) if args.json else "  ".join(f"{name} {value}" for name, value in row.items()), flush=True)

    if args.peer:
        with started(EMULATOR, os.environ) as emulator, asyncio.Runner(loop_factory=_loop) as runner:
            print(json.dumps(runner.run(peer(emulator.url))))
        return
    short = args.quick or args.tiny
    counts = [args.processes] if args.processes else [2] if short else [1, 2]
    sizes = [TINY] if args.tiny else [QUICK] if args.quick else [full(n) for n in ([args.live] if args.live else LIVE)]
    last: dict[str, Any] = {}
    with databases() as made:
        backends = [args.backend] if args.backend else ["postgres"] if short else ["sqlite", "postgres"]
        if "postgres" in backends and made.missing:
            raise SystemExit(made.missing)
        for backend in backends:
            for processes in counts:
                for each in sizes:
                    last = combination(made, backend, processes, each, tell)
                    tell({"measured": "all", "backend": backend, "processes": processes, **last})
    print(json.dumps(last))


LIVE = (1, 100, 1000)

if __name__ == "__main__":
    main()
