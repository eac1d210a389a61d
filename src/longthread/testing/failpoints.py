"""A driver that stops at every boundary of a write: to kill the process, to fail, or to inspect the store there."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from longthread.store.driver import Driver, QueryCall, Row, Signals, Transaction


@dataclass
class DriverWrapper:
    """Does what `driver` does. A subclass changes the transactions that it inspects."""

    driver: Driver

    @property
    def dialect(self) -> str:
        return self.driver.dialect

    @property
    def where(self) -> str:
        return self.driver.where

    @property
    def found_version(self) -> int:
        return self.driver.found_version

    @property
    def signals(self) -> Signals | None:
        return self.driver.signals

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        return self.driver.reading()

    def writing(self) -> AbstractAsyncContextManager[Transaction]:
        return self.driver.writing()

    def maintaining(self) -> AbstractAsyncContextManager[Transaction]:
        return self.driver.maintaining()

    def dedicated(self) -> AbstractAsyncContextManager[Transaction]:
        return self.driver.dedicated()

    async def close(self) -> None:
        await self.driver.close()


Reach = Callable[[str], None]
"""Called at each boundary with its name: `before BEGIN`, `after insert_entry`, `before COMMIT` and so on."""


@dataclass(frozen=True, slots=True)
class Write:
    """A row that a transaction wrote: the query's name and its values."""

    query: str
    values: Mapping[str, Any]


def _ignore(writes: list[Write]) -> None:
    """Ignore the writes."""


@dataclass
class Failpoints(DriverWrapper):
    """Reports every boundary.

    `reach` is called before and after each statement of a write transaction or of maintenance, and before and after a
    write transaction's begin and commit. `intend` is given a transaction's writes just before its commit, and
    `acknowledge` the same once the commit has returned. What was acknowledged must never be lost; of what was only
    intended, all is stored or nothing.
    """

    reach: Reach
    intend: Callable[[list[Write]], None] = _ignore
    acknowledge: Callable[[list[Write]], None] = _ignore

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Transaction]:
        self.reach("before BEGIN")
        async with self.driver.writing() as tx:
            self.reach("after BEGIN")
            watched = _Watched(tx, self.reach)
            yield watched
            self.intend(watched.writes)
            self.reach("before COMMIT")
        self.reach("after COMMIT")
        self.acknowledge(watched.writes)

    @asynccontextmanager
    async def maintaining(self) -> AsyncIterator[Transaction]:
        async with self.driver.maintaining() as tx:
            yield _Watched(tx, self.reach)


@dataclass(slots=True)
class _Watched:
    transaction: Transaction
    reach: Reach
    writes: list[Write] = field(default_factory=list)

    async def fetch(self, query: str, **values: Any) -> list[Row]:
        self.reach(f"before {query}")
        rows = await self.transaction.fetch(query, **values)
        self.reach(f"after {query}")
        return rows

    async def fetch_all(self, *asked: QueryCall, last: bool = False) -> list[list[Row]]:
        return [await self.fetch(query, **values) for query, values in asked]

    async def ahead(self, *asked: QueryCall) -> None:
        await self.transaction.ahead(*asked)

    async def run(self, query: str, **values: Any) -> int:
        self.reach(f"before {query}")
        touched = await self.transaction.run(query, **values)
        self.writes.append(Write(query, values))
        self.reach(f"after {query}")
        return touched

    async def later(self, query: str, **values: Any) -> None:
        self.reach(f"before {query}")
        await self.transaction.later(query, **values)
        self.writes.append(Write(query, values))
        self.reach(f"after {query}")

    async def expect(self, query: str, rows: int, **values: Any) -> None:
        self.reach(f"before {query}")
        await self.transaction.expect(query, rows, **values)
        self.reach(f"after {query}")

    async def run_all(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        given = [dict(row) for row in rows]
        self.reach(f"before {query}")
        await self.transaction.run_all(query, given)
        self.writes += [Write(query, row) for row in given]
        self.reach(f"after {query}")


@dataclass(slots=True)
class KillAt:
    """Kills this process, as `kill -9` does, at the boundary of this number (the first is 1). 0 only counts them."""

    number: int
    reached: int = 0

    def __call__(self, boundary: str) -> None:
        self.reached += 1
        if self.reached == self.number:
            os.kill(os.getpid(), signal.SIGKILL)
