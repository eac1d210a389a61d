"""Our own agent: what a turn of the analyst costs on a short and on a long thread, and what it leaves on disk."""

from __future__ import annotations

import asyncio
import gc
import math
import sqlite3
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from contenders import now
from conversation import raw_json
from databases import Database, Databases
from seeding import seed
from turn import turn

from longthread.langgraph.message_codec import message_of
from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.messages.message import Message, tool_call
from longthread.model.ids import new_id
from longthread.model.thread import Scope
from longthread.runs.analyst import Analyst
from longthread.runs.worker import may_be_alive
from longthread.settings import Settings
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.maintenance.deletions import prune
from longthread.store.maintenance.retention import Retention, RetentionPolicy
from longthread.store.maintenance.space import reclaim
from longthread.store.open import open_store
from longthread.testing import ScriptedModel

QUERY = {"sql": "SELECT name, day, share FROM t LIMIT 24"}
ANSWER = "The largest shares are the first ones, with about 4 percent each [q1]. " * 4
INDEX = (
    "recall_segments",
    "recall_postings",
    "recall_signatures",
    "recall_embedded",
    "memory_vectors",
    "memory_topics",
    "memory_topic_spans",
)
"""What recall finds entries by; all of it can be made anew from them."""
VACUUMED = 32
"""PostgreSQL is vacuumed every so many turns, where that is not left to its server. It looks once a minute whether to,
and people take longer for so many."""
USAGE = {"input_tokens": 1200, "output_tokens": 60, "total_tokens": 1260}


def instant(messages: list[Message]) -> Message:
    """A call, then an answer, whatever was asked: the model costs the same on any thread, so that the rest is seen."""
    if messages[-1].role == "tool":
        return Message("assistant", ANSWER, usage_metadata=USAGE)
    return Message(
        "assistant", "Look.", tool_calls=[tool_call("run_sql", QUERY, f"call_{new_id()}")], usage_metadata=USAGE
    )


@asynccontextmanager
async def analyst_on(database: Database, folder: Path) -> AsyncIterator[Analyst]:
    """An analyst with a scripted model on a database."""
    settings = Settings.load(env_file=None, data_dir=folder, model="bench:scripted")
    model = ScriptedModel(instant)
    async with open_store(database.address) as store:
        analyst = Analyst(store, settings, models=lambda name, _: model)
        yield analyst
        await analyst.close()


def make_source(folder: Path) -> str:
    """The database that the analyst asks."""
    path = folder / "source.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "DROP TABLE IF EXISTS t; "
            "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000) "
            "SELECT hex(randomblob(6)) AS name, date('2026-01-01', i || ' days') AS day, "
            "abs(random()) / 9.3e18 AS share FROM n;"
        )
    return str(path)


async def ask(analyst: Analyst, thread: str, source: str) -> float:
    """Milliseconds of a whole turn: a question, a call, its result, an answer."""
    started = now()
    handle = await analyst.ask(
        "Which names have the largest shares?", thread_id=thread, source=source, user_id=analyst.settings.user
    )
    await handle.wait()
    taken = now() - started
    await analyst.settle()  # what goes on behind a turn is not to disturb the next
    return taken


async def seeded_thread(analyst: Analyst, source: str, turns: int) -> str:
    """A thread of so many turns."""
    return await seed(analyst.store, [draft for number in range(turns) for draft in turn(number)], source=source)


async def turns(
    databases: Databases, lengths: Sequence[int], rounds: int, *, behind: bool = True
) -> list[dict[str, Any]]:
    """The analyst's turn at each length, on each backend; the shorter threads are seeded anew each round.

    Args:
        behind: what goes on behind a turn, indexing and pruning, goes on.
    """
    rows = []
    source = make_source(databases.folder)
    for backend in databases.backends:
        async with analyst_on(databases.make(backend, "agent"), databases.folder) as analyst:
            if not behind:
                analyst.recaller.keep_up = analyst.pruner.keep_up = _nothing  # type: ignore[method-assign]
            taken: dict[int, list[float]] = {length: [] for length in lengths}
            longest = await seeded_thread(analyst, source, lengths[-1])
            for _ in range(rounds):
                threads = {length: await seeded_thread(analyst, source, length) for length in lengths[:-1]}
                threads[lengths[-1]] = longest
                for thread in threads.values():  # the first turn after seeding folds the whole thread, once
                    await ask(analyst, thread, source)
                gc.collect()
                gc.freeze()  # what the threads hold need not be looked at before each turn
                for _ in range(2):
                    for length, thread in threads.items():
                        gc.collect()
                        taken[length].append(await ask(analyst, thread, source))
                gc.unfreeze()
            rows += [
                {"measured": "agent", "backend": backend, "turns": length, "turn_ms": round(statistics.median(ms), 2)}
                for length, ms in taken.items()
            ]
    return rows


async def disk(
    databases: Databases, ends: Sequence[int], *, since: int | None = None, until: float = math.inf
) -> list[dict[str, Any]]:
    """What so many turns of the analyst leave on disk, beside their messages as JSON, on each backend.

    With every checkpoint kept; in a long run also after `db prune`, which keeps the newest, and after `db prune
    --runs-older-than 0s`, which leaves the conversation without the runs that made it. The index for recall follows
    from the entries and is told apart. Both backends are at work at once, in a process each: it is bytes that are
    counted, and no time.

    Args:
        ends: how many turns these may be: the last number, or one before when it is `until` by then.
        since: for a short run: how large it was after so many turns is told as well, and PostgreSQL is vacuumed along
            the way, for it is over before the server does that of itself.
    """
    source, loop = make_source(databases.folder), asyncio.get_running_loop()
    with ProcessPoolExecutor(1, get_context("spawn")) as beside:
        works = []
        for backend in databases.backends:
            given = (databases.make(backend, "disk"), databases.folder, source, ends, since, until)
            works.append(loop.run_in_executor(beside, _in_loop, given) if backend == "sqlite" else _grown(*given))
        return await asyncio.gather(*works)


def _in_loop(given: tuple[Any, ...]) -> dict[str, Any]:
    """What a process beside this one does."""
    return asyncio.run(_grown(*given))


async def _grown(
    database: Database, folder: Path, source: str, ends: Sequence[int], since: int | None, until: float
) -> dict[str, Any]:
    """The row of one backend."""
    async with analyst_on(database, folder) as analyst:
        sizes = {"empty": _sizes(database)}
        thread = await seeded_thread(analyst, source, 0)
        gc.collect()
        gc.freeze()  # what was imported need not be looked at again during the turns
        for number in range(1, ends[-1] + 1):
            await ask(analyst, thread, source)
            if since and number % VACUUMED == 0:
                database.vacuum()
            if number == since:
                sizes["since"] = _sizes(database)
            if number in ends and time.monotonic() > until:
                break
        entries, raw = await _raw(analyst, thread)
        sizes["grown"] = _sizes(database)
        if not since:
            await _prune(analyst.store, RetentionPolicy())
            sizes["pruned"] = _sizes(database)
            await _prune(analyst.store, RetentionPolicy(runs_before=log.now()))
            sizes["runless"] = _sizes(database)
        gc.unfreeze()
    row = {"measured": "disk", "backend": database.backend, "turns": number, "entries": entries, "raw_bytes": raw}
    row |= {"since": since} if since else {}
    empty, _ = sizes.pop("empty")
    row |= {"empty_bytes": empty}
    row |= {f"{name}_bytes": size - empty for name, (size, _) in sizes.items()}
    return row | {f"{name}_index_bytes": index for name, (_, index) in sizes.items()}


def _sizes(database: Database) -> tuple[int, int]:
    """Bytes of everything but the index for recall, and of that."""
    database.settle()
    index = database.size_of(INDEX)
    return database.size() - index, index


def _nothing(_: Scope, **about: Any) -> None:
    """Do nothing behind a turn."""


async def _raw(analyst: Analyst, thread: str) -> tuple[int, int]:
    """How many entries the thread has, and their bytes as JSON messages."""
    async with analyst.store.reading() as tx:
        tip, count = await log.position(tx, thread)
        entries = await log.branch(tx, thread, tip, limit=count)
    return len(entries), raw_json([message_of(entry) for entry in entries])


async def _prune(store: Driver, policy: RetentionPolicy) -> None:
    retention = Retention(policy, CheckpointKeeper(), may_be_alive)
    await prune(store, retention, lambda done, total, thread: None, apply=True)
    await reclaim(store, lambda text: None)
