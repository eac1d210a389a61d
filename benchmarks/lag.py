"""How late an event loop is while it runs a graph, beside LangGraph's own asynchronous saver of the same database."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Any

from contenders import AsyncStock, Longthread
from conversation import Script, State, build
from databases import Databases
from savers import seeded
from short import Ours

AT_ONCE = 4
"""Runs at once, each on its own thread."""
TICK = 0.001


class Clock:
    """Wakes up every `TICK` seconds, and notes by how many milliseconds it is late.

    `own` counts only what the loop's own thread has computed in that time: other programs make a loop late too.
    """

    def __init__(self) -> None:
        self.late: list[float] = []
        self.own: list[float] = []

    async def run(self) -> None:
        while True:
            started, computed = time.perf_counter(), time.thread_time()
            await asyncio.sleep(TICK)
            late = (time.perf_counter() - started - TICK) * 1000
            self.late.append(late)
            self.own.append(min(late, (time.thread_time() - computed) * 1000))


async def loops(found: Databases, messages: int, turns: int) -> list[dict[str, Any]]:
    """The lateness at the 99th percentile while `AT_ONCE` runs make `turns` turns each, on states of so many messages:
    one contender behind the other, twice, now one first, now the other."""
    rows = []
    for backend in found.backends:
        racing = Ours("lag", found.make(backend, "lag")), AsyncStock("late", found.make(backend, "late"))
        clocks = {each.name: Clock() for each in racing}
        for each in racing:
            await each.open()
            for number in range(AT_ONCE):
                await each.seed(f"lag-{number}", seeded(messages // 4))
            await _together(each, messages, 1)  # warms what a turn keeps warm
        for number, order in enumerate((racing, racing[::-1])):
            for each in order:
                gc.collect()
                clock = asyncio.create_task(clocks[each.name].run())
                await _together(each, messages + (1 + number) * turns, turns)
                clock.cancel()
        for each in racing:
            await each.close()
        ours, stock = clocks.values()
        rows.append(
            {"measured": "lag", "backend": backend, "messages": messages, "at_once": AT_ONCE}
            | {"late_ms": _p99(ours.late), "stock_late_ms": _p99(stock.late)}
            | {"own_ms": _p99(ours.own), "stock_own_ms": _p99(stock.own)}
        )
    return rows


async def _together(each: Longthread, first: int, turns: int) -> None:
    await asyncio.gather(*(_turns(each, f"lag-{number}", first, turns) for number in range(AT_ONCE)))


async def _turns(each: Longthread, thread: str, first: int, turns: int) -> None:
    script = Script()  # each run has its own: they are at work at once
    graph = build(State, script).compile(checkpointer=each._saver)
    for number in range(first, first + turns):
        script.write(number)
        await graph.ainvoke({"messages": script.question}, {"configurable": {"thread_id": thread}})


def _p99(values: list[float]) -> float:
    return round(sorted(values)[int(len(values) * 0.99)], 2)
