"""A store that counts what is asked of it."""

from __future__ import annotations

import collections
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from longthread.store.driver import QueryCall, Row, Transaction
from longthread.testing.failpoints import DriverWrapper


@dataclass
class Counting(DriverWrapper):
    """`statements` counts by the name of the query, `rows` what was read, `writes` the transactions.
    `values` are those that each query was asked with last.
    """

    statements: collections.Counter[str] = field(default_factory=collections.Counter)
    rows: collections.Counter[str] = field(default_factory=collections.Counter)
    writes: int = 0
    values: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Transaction]:
        async with self.driver.reading() as tx:
            yield _Counted(self, tx)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Transaction]:
        self.writes += 1
        async with self.driver.writing() as tx:
            yield _Counted(self, tx)

    def reset(self) -> None:
        """Count from nothing."""
        self.statements.clear()
        self.rows.clear()
        self.writes = 0


@dataclass
class _Counted:
    counting: Counting
    transaction: Transaction

    async def fetch(self, query: str, **values: Any) -> list[Row]:
        rows = await self.transaction.fetch(query, **values)
        self.counting.values[query] = values
        self.counting.statements[query] += 1
        self.counting.rows[query] += len(rows)
        return rows

    async def fetch_all(self, *asked: QueryCall, last: bool = False) -> list[list[Row]]:
        found = await self.transaction.fetch_all(*asked, last=last)
        for (query, values), rows in zip(asked, found, strict=True):
            self.counting.values[query] = values
            self.counting.statements[query] += 1
            self.counting.rows[query] += len(rows)
        return found

    async def ahead(self, *asked: QueryCall) -> None:
        await self.transaction.ahead(*asked)

    async def run(self, query: str, **values: Any) -> int:
        self.counting.statements[query] += 1
        self.counting.values[query] = values
        return await self.transaction.run(query, **values)

    async def later(self, query: str, **values: Any) -> None:
        self.counting.statements[query] += 1
        self.counting.values[query] = values
        await self.transaction.later(query, **values)

    async def expect(self, query: str, rows: int, **values: Any) -> None:
        self.counting.statements[query] += 1
        self.counting.values[query] = values
        await self.transaction.expect(query, rows, **values)

    async def run_all(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        given = [dict(row) for row in rows]
        self.counting.statements[query] += 1
        if given:
            self.counting.values[query] = given[-1]
        await self.transaction.run_all(query, given)
