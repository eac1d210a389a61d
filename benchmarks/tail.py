"""The end of a very long thread, with branches, beside a plain range scan of as many rows."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Sequence
from typing import Any

from contenders import now
from databases import Databases
from seeding import seed
from turn import turn

from longthread.model.entry import Draft
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.open import open_store

BRANCHES = 50
REWOUND = 40
"""Entries that each branch leaves behind: the conversation goes on from before them."""
LAST = 200


async def measure(databases: Databases, entries: int, rounds: int) -> list[dict[str, Any]]:
    """Loading the last 200 entries of the active branch of a thread of `entries` entries, on each backend.

    The thread is rewound 50 times by 40 entries, the last time within its last 200 entries, so that they are not one
    range. The scan reads the thread's last 200 rows through the same driver, and makes nothing of them.
    """
    rows = []
    for backend in databases.backends:
        async with open_store(databases.make(backend, "tail").address) as store:
            thread = await _thread(store, entries)
            taken: dict[str, list[float]] = {"tail_ms": [], "scan_ms": []}
            gc.collect()
            for number in range(rounds + 1):
                for name, work in (("tail_ms", _tail), ("scan_ms", _scan)):
                    started = now()
                    await work(store, thread, entries)
                    if number:
                        taken[name].append(now() - started)
            medians = {name: round(statistics.median(values), 3) for name, values in taken.items()}
            rows.append({"measured": "tail", "backend": backend, "entries": entries, "branches": BRANCHES} | medians)
    return rows


async def _tail(store: Driver, thread: str, entries: int) -> None:
    async with store.reading() as tx:
        found = await log.branch(tx, thread, entries, limit=LAST)
    assert len(found) == LAST


async def _scan(store: Driver, thread: str, entries: int) -> None:
    async with store.reading() as tx:
        found = await tx.fetch("select_entries_range", thread_id=thread, first=entries - LAST + 1, last=entries)
    assert len(found) == LAST


async def _thread(store: Driver, entries: int) -> str:
    # The last branch begins within the last 200 entries, the others at equal distances before it.
    starts = [entries * n // BRANCHES for n in range(1, BRANCHES)] + [entries - LAST // 2]
    return await seed(store, _drafts(entries), parents={start + 1: start - REWOUND for start in starts})


def _drafts(entries: int) -> Sequence[Draft]:
    return [draft for number in range(-(-entries // 4)) for draft in turn(number)][:entries]
