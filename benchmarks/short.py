"""A turn on a short thread, beside LangGraph's own asynchronous saver of the same database."""

from __future__ import annotations

import gc
import statistics
import time
from typing import Any

from contenders import AsyncStock, Longthread
from databases import Databases
from savers import seeded

from longthread.langgraph import LongthreadSaver

TURNS = 10
EACH = 3
"""Turns of each on a thread, which is then no longer as short."""


class Ours(Longthread):
    """The saver as an application has it."""

    saver = LongthreadSaver


async def turns(found: Databases, rounds: int) -> list[dict[str, Any]]:
    """Milliseconds of a turn through the graph on threads of ten turns: one of each in turn, now one first, now the
    other. The processor's part of it counts threads of this process, and no server."""
    rows = []
    for backend in found.backends:
        racing = Ours("short", found.make(backend, "short")), AsyncStock("async", found.make(backend, "async"))
        walls: dict[str, list[float]] = {each.name: [] for each in racing}
        cpus: dict[str, list[float]] = {each.name: [] for each in racing}
        for each in racing:
            await each.open()
        for number in range(rounds):
            thread = f"short-{number}"
            for each in racing:
                await each.seed(thread, seeded(TURNS - 1))
                await each.turn(thread, TURNS - 1)  # warms what a turn keeps warm
            gc.collect()
            for turn in range(TURNS, TURNS + EACH):
                for each in racing if (number + turn) % 2 else racing[::-1]:
                    started = time.process_time()
                    walls[each.name].append(await each.turn(thread, turn))
                    cpus[each.name].append((time.process_time() - started) * 1000)
        for each in racing:
            await each.close()
        row = {"measured": "short", "backend": backend, "turns": TURNS, "measured_turns": rounds * EACH}
        row |= dict(zip(("turn_ms", "stock_ms"), _medians(walls), strict=True))
        rows.append(row | dict(zip(("turn_cpu_ms", "stock_cpu_ms"), _medians(cpus), strict=True)))
    return rows


def _medians(taken: dict[str, list[float]]) -> list[float]:
    return [round(statistics.median(times), 3) for times in taken.values()]
