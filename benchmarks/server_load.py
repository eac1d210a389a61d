"""What the servers are put under: turns, live runs, idle watchers, a kill. Each gives a row of numbers."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import statistics
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import psycopg
from databases import Database
from processes import Server
from watchers import Asked, Refused, Watcher, ask

_POLL_SECONDS = 0.02
_PATIENCE_SECONDS = 13.0
"""How long an orphaned run is waited for: 12 s are promised."""
_LATE_SECONDS = 10.0
"""How much longer than its text a run may take: then it is lost."""
_QUIET_RUNS = 10
_WAIT_SECONDS = 30.0


@dataclass
class Load:
    """Servers that are up, and the database they share."""

    servers: list[Server]
    database: Database
    asked: int = field(default=0)

    def next_url(self) -> str:
        """The servers in turn."""
        self.asked += 1
        return self.servers[self.asked % len(self.servers)].url

    def cpu(self) -> float:
        return sum(server.tree_cpu() for server in self.servers)

    def rss_mb(self) -> float:
        return sum(server.rss_mb() for server in self.servers)

    def reads(self) -> int:
        """How many times the servers have read from the store, by their own count."""
        return sum(_reads(server.url) for server in self.servers)

    def connect(self) -> Any:
        """Open a connection to the store."""
        if self.database.backend == "sqlite":
            return closing(sqlite3.connect(self.database.address))
        return psycopg.connect(self.database.address, autocommit=True)


class Costs:
    """CPU from now on, of the servers, of PostgreSQL and of the clients, in seconds."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._since = time.monotonic()
        self._before = self._now()

    def _now(self) -> tuple[float, float, float]:
        own = os.times()
        return self._load.cpu(), self._load.database.worked(), own.user + own.system

    def taken(self) -> tuple[float, float, float, float]:
        """Seconds of the servers, of PostgreSQL, of the clients, and of the clock."""
        server, postgres, clients = (now - then for now, then in zip(self._now(), self._before, strict=True))
        return server, postgres, clients, time.monotonic() - self._since


async def turns(load: Load, count: int, at_once: int, *, watched: bool) -> dict[str, Any]:
    """Have so many turns, a number of them at once, each a query and an answer of eight chunks without a pause."""
    queue, ends = iter(range(count)), Ends(load)

    async def worker() -> None:
        for _ in queue:
            url = load.next_url()
            asked = await ask(url, "lean-8x0")
            await (Watcher(asked, url).watch() if watched else ends.wait(asked.run_id))

    looking = asyncio.create_task(ends.look())
    costs = Costs(load)
    await asyncio.gather(*(worker() for _ in range(at_once)))
    server, postgres, clients, seconds = costs.taken()
    await _give_up([looking])
    return {
        "turns": count,
        "turns_per_s": round(count / seconds, 1),
        "cpu_ms_per_turn": round(1000 * server / count, 1),
        "postgres_ms_per_turn": round(1000 * postgres / count, 1),
        "clients_ms_per_turn": round(1000 * clients / count, 1),
    }


async def in_pairs(load: Load, count: int, at_once: int, *, seconds: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Have turns that nobody watches, and as many that somebody does, for so many seconds: `count` of these, then of
    those. Each number is the median of such parts: the machine is not as fast in one moment as in the next."""
    until = time.monotonic() + seconds
    rows: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
    while len(rows[True]) < 2 or time.monotonic() < until:
        first = len(rows[True]) % 2 == 0  # each bears what goes on behind the other
        for watched in (first, not first):
            rows[watched].append(await turns(load, count, at_once, watched=watched))
    return _median(rows[False]), _median(rows[True])


def _median(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the sum of the turns, and of each other number the median."""
    medians = {name: round(statistics.median(row[name] for row in rows), 1) for name in rows[0]}
    return medians | {"turns": sum(row["turns"] for row in rows)}


class Ends:
    """Looks into the store for runs that have ended: the servers are asked nothing."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._waiting: dict[str, asyncio.Event] = {}

    async def wait(self, run_id: str) -> None:
        self._waiting[run_id] = asyncio.Event()
        async with asyncio.timeout(_WAIT_SECONDS):
            await self._waiting[run_id].wait()

    async def look(self) -> None:
        """Look again and again, whether anybody waits or not: it costs the same then."""
        with self._load.connect() as connection:
            while True:
                ids = ", ".join(f"'{each}'" for each in ["", *self._waiting])
                sql = f"SELECT id FROM runs WHERE ended_at IS NOT NULL AND id IN ({ids})"
                for (run_id,) in connection.execute(sql).fetchall():
                    self._waiting.pop(run_id).set()
                await asyncio.sleep(_POLL_SECONDS)


async def live(load: Load, count: int, rate: float, pieces: int) -> dict[str, Any]:
    """Have so many runs arrive at a rate, each watched from its start to its end."""
    rss, costs = load.rss_mb(), Costs(load)
    watchers: list[Watcher] = []
    refused: list[str] = []

    async def one(url: str) -> None:
        try:
            asked = await ask(url, f"lean-{pieces}x1000")
        except (Refused, OSError) as error:
            refused.append(str(error))
            return
        watcher = Watcher(asked, url)
        watchers.append(watcher)
        await watcher.watch()

    began = time.monotonic()
    steady = asyncio.create_task(_steady(load, watchers, began, count / rate, pieces, rss))
    tasks = []
    for number in range(count):
        await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
        tasks.append(asyncio.create_task(one(load.next_url())))
    _, pending = await asyncio.wait(tasks, timeout=pieces + _LATE_SECONDS)
    await _give_up(pending)
    server, postgres, clients, seconds = costs.taken()
    await asyncio.sleep(1)  # what goes on behind a run's end
    firsts = [1000 * (each.first - each.run.sent) for each in watchers if each.first is not None]
    return {
        "runs": count,
        "lost": count - sum(each.is_whole(pieces) for each in watchers),
        "refused": len(refused),
        "reconnected": sum(each.connections - 1 for each in watchers),
        "first_event_p50_ms": _at(firsts, 50),
        "first_event_p95_ms": _at(firsts, 95),
        "kb_ended": round(1000 * (load.rss_mb() - rss) / count, 1),
        **await steady,
        "server_cores": round(server / seconds, 2),
        "postgres_cores": round(postgres / seconds, 2),
        "clients_cores": round(clients / seconds, 2),
        "why_refused": refused[:1],
    }


async def _steady(
    load: Load, watchers: Sequence[Watcher], began: float, arrivals: float, pieces: int, rss: float
) -> dict[str, Any]:
    """Measure between the last arrival and the first end, when nothing happens but chunks; a backlog is waited for.

    `rss` is the servers' memory before the first arrival.
    """
    await asyncio.sleep(arrivals + 1)
    first_end = began + pieces - 1
    await _until(lambda: all(each.pieces for each in watchers), seconds=first_end - 2 - time.monotonic())
    costs, before = Costs(load), sum(each.pieces for each in watchers)
    running = sum(not each.ended for each in watchers)
    await asyncio.sleep(max(1.0, first_end - time.monotonic()))
    server, postgres, clients, _ = costs.taken()
    chunks = sum(each.pieces for each in watchers) - before
    memory = {"live": running, "kb_per_conversation": round(1000 * (load.rss_mb() - rss) / max(1, running), 1)}
    spent = {"us": server, "postgres_us": postgres, "clients_us": clients}
    return memory | {f"{name}_per_chunk": round(1e6 * each / max(1, chunks)) for name, each in spent.items()}


async def idle(load: Load, count: int, seconds: float) -> dict[str, Any]:
    """Count how often the servers read more when quiet runs are watched, by so many watchers."""
    runs = await _quiet(load, min(_QUIET_RUNS, count), f"lean-4x200+{round(1000 * (2 * seconds + 25))}")
    alone = await _reads_in(load, seconds)
    watchers = [Watcher(runs[number % len(runs)], load.next_url()) for number in range(count)]
    tasks = [asyncio.create_task(each.watch()) for each in watchers]
    await _until(lambda: all(each.pieces for each in watchers))
    costs = Costs(load)
    watched = await _reads_in(load, seconds)
    server = costs.taken()[0]
    await _give_up(tasks)
    reads = round(max(0, watched - alone) / count / seconds, 2)
    cpu = round(1000 * server / count / seconds, 2)
    return {"watchers": count, "reads_alone": alone, "reads_per_watcher_s": reads, "cpu_ms_per_watcher_s": cpu}


async def _reads_in(load: Load, seconds: float) -> int:
    before = load.reads()
    await asyncio.sleep(seconds)
    return load.reads() - before


def _reads(url: str) -> int:
    name = 'longthread_store_seconds_count{kind="read"} '
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
        return next(
            int(line.removeprefix(name)) for line in answer.read().decode().splitlines() if line.startswith(name)
        )


async def takeover(load: Load, count: int) -> dict[str, Any]:
    """Kill the server that executes so many runs, which are watched through the other one."""
    first, second = load.servers[:2]
    asked = [await ask(first.url, "lean-60x1000") for _ in range(count)]
    watchers = [Watcher(each, second.url) for each in asked]
    tasks = [asyncio.create_task(each.watch()) for each in watchers]
    await _until(lambda: all(each.pieces for each in watchers))
    for each in watchers:
        each.new_attempt = None
    first.kill()
    killed = time.monotonic()
    await _until(lambda: all(each.new_attempt for each in watchers), seconds=_PATIENCE_SECONDS)
    await _give_up(tasks)
    taken = [each.new_attempt - killed for each in watchers if each.new_attempt is not None]
    whole = len(taken) >= 0.95 * count
    return {"orphans": count, "taken_over": len(taken), "takeover_p95_s": _at(taken, 95) if whole else None}


async def _quiet(load: Load, count: int, model: str) -> list[Asked]:
    """Runs that have said something and are silent now."""
    watchers = []
    for _ in range(count):
        url = load.next_url()
        watchers.append(Watcher(await ask(url, model), url))
    tasks = [asyncio.create_task(each.watch()) for each in watchers]
    await _until(lambda: all(each.pieces for each in watchers))
    await _give_up(tasks)
    return [each.run for each in watchers]


async def _until(holds: Callable[[], bool], seconds: float = _WAIT_SECONDS) -> None:
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:  # noqa: ASYNC110 - sockets and a store are looked at
        await asyncio.sleep(_POLL_SECONDS)


async def _give_up(tasks: Sequence[asyncio.Task[None]] | set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _at(values: Sequence[float], percent: int) -> float | None:
    """Return a percentile, the middle of two if it lies between them."""
    if not values:
        return None
    if len(values) == 1:
        return round(values[0], 2)
    return round(statistics.quantiles(values, n=100, method="inclusive")[percent - 1], 2)


_ANSWERED: list[Any] = [
    {"role": "user", "content": "Which names have the largest shares?"},
    {
        "role": "assistant",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "q", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "[]"},
]
"""The second call of a turn: the answer in pieces."""


async def peer(url: str, streams: int = 300, seconds: float = 25) -> dict[str, Any]:
    """Read so many streams with the `openai` client, a chunk a second each, and count chunks and CPU once all have
    begun."""
    import openai

    client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    chunks = [0] * streams
    arrivals = streams / 60
    model = f"lean-{round(arrivals + seconds) + 10}x1000"

    async def read(number: int) -> None:
        async for _ in await client.chat.completions.create(model=model, messages=_ANSWERED, stream=True):
            chunks[number] += 1

    tasks = []
    for number in range(streams):
        tasks.append(asyncio.create_task(read(number)))
        await asyncio.sleep(arrivals / streams)
    await asyncio.sleep(2)  # the first chunk comes at once
    before, cpu = sum(chunks), time.process_time()
    await asyncio.sleep(seconds)
    spent, came = time.process_time() - cpu, sum(chunks) - before
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {"streams": streams, "chunks": came, "openai": openai.__version__, "us_per_chunk": round(1e6 * spent / came)}
