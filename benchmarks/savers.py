"""The savers, side by side: time, bytes and loading at several lengths of a thread."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from contenders import Contender, Delta, Floor, Longthread, Stock
from conversation import turn_messages
from databases import Databases
from langchain_core.messages import BaseMessage

NAMES: dict[str, type[Contender]] = {"longthread": Longthread, "stock": Stock, "delta": Delta, "floor": Floor}
SNAPSHOT_TURNS = 25
"""Turns from one snapshot of a delta channel to the next: bytes are counted over so many, or they would miss it."""
SHORT = 100
"""Threads up to this many turns are seeded anew each round, so that they stay as long as they are said to be."""
PASSES = 3
"""How often a round measures what is quick, where a slow one is measured once."""


@dataclass
class Sample:
    """What was measured of one contender at one length. Times in milliseconds, bytes for one turn."""

    graph_ms: list[float] = field(default_factory=list)
    saver_ms: list[float] = field(default_factory=list)
    open_ms: list[float] = field(default_factory=list)
    cold_ms: list[float] = field(default_factory=list)
    next_ms: list[float] = field(default_factory=list)
    warm_ms: list[float] = field(default_factory=list)
    written: int = 0
    disk: int = 0
    turns: int = 0

    def row(self) -> dict[str, Any]:
        """Medians, and bytes a turn."""
        times = {
            name: round(statistics.median(values), 3)
            for name in ("graph_ms", "saver_ms", "open_ms", "cold_ms", "next_ms", "warm_ms")
            if (values := getattr(self, name))
        }
        written = {"written_bytes": round(self.written / self.turns)} if self.written else {}
        return times | written | {"disk_bytes": round(self.disk / self.turns), "measured_turns": self.turns}


class Race:
    """All contenders on all backends, opened once."""

    def __init__(self, databases: Databases, names: Sequence[str], loads: Sequence[str]) -> None:
        """`loads` are the names of those whose loading is measured."""
        self.contenders = [
            NAMES[name](name, databases.make(backend, name)) for backend in databases.backends for name in names
        ]
        self._loads = loads
        self._opened: list[Contender] = []
        self.transactions: dict[str, int] = {}

    async def open(self) -> None:
        """Open all, and count the transactions that a turn is: the floor makes as many."""
        gc.collect()
        gc.freeze()  # what was imported need not be looked at again before each measurement
        for contender in self.contenders:
            await contender.open()
            self._opened.append(contender)
            if isinstance(contender, Longthread):
                await contender.seed("count", seeded(1))
                self.transactions[contender.database.backend] = await contender.transactions("count", 1)
        for contender in self.contenders:
            if isinstance(contender, Floor):
                contender.transactions = self.transactions.get(contender.database.backend, contender.transactions)

    async def close(self) -> None:
        gc.unfreeze()
        for contender in self._opened:
            await contender.close()

    async def run(self, length: int, rounds: int) -> list[dict[str, Any]]:
        """Every contender on a thread of `length` turns; in each round one turn of each, in turn."""
        samples = {contender: Sample() for contender in self.contenders}
        messages, number = seeded(length), length
        for round_ in range(rounds):
            thread = f"{length}-{round_ if length <= SHORT else 0}"
            for contender in self.contenders if round_ == 0 or length <= SHORT else ():
                await contender.seed(thread, messages)
                await contender.bare_turn(thread, length)  # the first turn warms what a turn keeps warm
                contender.database.settle()
            gc.collect()
            gc.freeze()  # nor need what each holds of its thread
            for pass_ in range(PASSES if length > SHORT else 1):
                for contender, sample in samples.items():
                    if pass_ == 0 or isinstance(contender, Longthread | Floor):
                        await self._measure(contender, sample, thread, number + 1)
                    if pass_ == 0 and contender.name in self._loads:
                        gc.collect()
                        opened, loaded = await contender.cold(thread)
                        sample.open_ms.append(opened)
                        sample.cold_ms.append(loaded)
                number += 2
        for contender, sample in samples.items():
            await self._whole_cycle(contender, sample, f"{length}-0", number + 1)
        return [
            {"measured": "turn", "backend": c.database.backend, "saver": c.name, "turns": length} | sample.row()
            for c, sample in samples.items()
        ]

    async def _measure(self, contender: Contender, sample: Sample, thread: str, number: int) -> None:
        if contender.has_graph:
            gc.collect()
            sample.graph_ms.append(await self._counted(contender, sample, contender.turn, thread, number))
        gc.collect()
        sample.saver_ms.append(await self._counted(contender, sample, contender.bare_turn, thread, number + 1))
        for taken in (sample.next_ms, sample.warm_ms, sample.warm_ms) if contender.name in self._loads else ():
            gc.collect()
            taken.append(await contender.load(thread))

    async def _counted(self, contender: Contender, sample: Sample, work: Any, thread: str, number: int) -> float:
        database = contender.database
        size, written = database.size(), database.written()
        taken: float = await work(thread, number)
        sample.disk += database.size() - size
        sample.written += (database.written() or 0) - (written or 0)
        sample.turns += 1
        return taken

    async def _whole_cycle(self, contender: Contender, sample: Sample, thread: str, number: int) -> None:
        if isinstance(contender, Delta):
            for more in range(max(0, SNAPSHOT_TURNS - sample.turns)):
                await self._counted(contender, sample, contender.bare_turn, thread, number + more)
        written = contender.database.written()
        contender.database.settle()
        sample.written += (contender.database.written() or 0) - (written or 0)


def seeded(turns: int) -> list[BaseMessage]:
    """The messages of a thread of so many turns."""
    return [message for number in range(turns) for message in turn_messages(number)]
