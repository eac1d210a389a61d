"""Transactions on a SQLite connection: every statement runs in the connection's thread, in few hand-overs."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from typing import Any

from longthread.errors import NotAsExpected, StoreError
from longthread.store.backends.sqlite_connection import BUSY_SECONDS, ERRORS, StoreConnection, code_of, failure
from longthread.store.driver import CHANGED, QueryCall, Row, storable
from longthread.store.queries import queries

FAILED = "a statement of the transaction failed; nothing of it was written."
LONGEST_PAUSE = 0.025
"""Longest interval in seconds between retries."""
READ = "BEGIN"
"""How a transaction begins that only reads."""
WRITE = "BEGIN IMMEDIATE"
"""How one begins that writes: what it reads first must not change before it writes."""

_Key = tuple[str, frozenset[tuple[str, Any]]]
"""A query and its values."""
_Work = Callable[[sqlite3.Connection], Any]
"""Work in the connection's thread."""


class SqliteTransaction:
    """A transaction on one connection.

    `begin` and statements without a result go with the next one that somebody waits for, at the latest with the
    commit. So most transactions are one hand-over, as they are one message on PostgreSQL.
    """

    def __init__(self, connection: StoreConnection, begin: str | None = None) -> None:
        """Without `begin`, the connection is used as it is, and no statement waits for another one."""
        self._connection = connection
        self._queries = queries("sqlite")
        self._begin = begin
        self._only_reads = begin == READ
        self._has_begun = self._alone = begin is None
        self._has_ended = False
        self._waiting: list[_Work] = []
        self._asked: dict[_Key, _Work] = {}
        self._found: dict[_Key, list[Row]] = {}
        self._failed = False

    async def fetch(self, query: str, **values: Any) -> list[Row]:
        if self._asked or self._found:
            [rows] = await self.fetch_all((query, values))
        else:
            [rows] = await self._send(_reading(self._queries[query], storable(values)))
        return rows

    async def fetch_all(self, *asked: QueryCall, last: bool = False) -> list[list[Row]]:
        keys = []
        for query, values in asked:
            given = storable(values)
            keys.append(_key_of(query, given))
            if keys[-1] not in self._found:
                self._asked[keys[-1]] = _reading(self._queries[query], given)
        if any(key in self._asked for key in keys):
            await self._find_asked(last=last and self._only_reads)
        rows = [self._found[key] for key in keys]
        for key in keys:
            self._found.pop(key, None)
        return rows

    async def ahead(self, *asked: QueryCall) -> None:
        """Fetch all queries with the first one: each hand-over to the connection's thread costs a wait."""
        for query, values in asked:
            given = storable(values)
            self._asked[_key_of(query, given)] = _reading(self._queries[query], given)

    async def run(self, query: str, **values: Any) -> int:
        self._found.clear()
        [count] = await self._send(_running(self._queries[query], storable(values)))
        return int(count)

    async def later(self, query: str, **values: Any) -> None:
        await self._send_later(_running(self._queries[query], storable(values)))

    async def expect(self, query: str, rows: int, **values: Any) -> None:
        await self._send_later(_expecting(self._queries[query], storable(values), rows))

    async def run_all(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        sql, given = self._queries[query], [storable(row) for row in rows]
        if given:
            await self._send_later(lambda database: database.executemany(sql, given).close())

    async def commit(self) -> None:
        """Commit what the transaction has done, with the statements that wait. Raises `StoreError`: it has failed."""
        self._expect_sound()
        if self._has_begun or self._waiting:
            await self._send(sqlite3.Connection.commit)
            self._has_ended = True

    async def end(self) -> None:
        """Roll back what was not committed, without waiting for it: the connection's next work comes after it.

        After a cancellation, the thread may begin the transaction only now.
        """
        if (self._has_begun or self._connection.broken_off) and not self._has_ended:
            await self._connection.rollback()

    async def _find_asked(self, *, last: bool) -> None:
        asked, self._asked = self._asked, {}
        end = (sqlite3.Connection.rollback,) if last else ()
        found = await self._send(*asked.values(), *end)
        self._has_ended = last
        self._found |= zip(asked, found[: len(asked)], strict=True)

    async def _send_later(self, step: _Work) -> None:
        self._found.clear()
        if self._alone:
            await self._send(step)
        else:
            self._expect_sound()
            self._waiting.append(step)

    async def _send(self, *steps: _Work) -> list[Any]:
        """Do what waits and then `steps`; return the results of these."""
        self._expect_sound()
        work, self._waiting = [*self._waiting, *steps], []
        found: list[Any] | None = None
        try:
            found = await self._do(work)
        except ERRORS as error:
            raise failure(error) from error
        finally:  # after a cancellation too: the thread may have done it, or a part
            self._failed |= found is None
        return found[-len(steps) :]

    async def _do(self, work: Iterable[_Work]) -> list[Any]:
        """Do work in the connection's thread, and begin again as long as another process writes."""
        until, pause = time.monotonic() + BUSY_SECONDS, 0.001
        while True:
            try:
                return await self._connection.apart(lambda database: self._done(database, work))
            except sqlite3.Error as error:
                is_busy = not self._has_begun and code_of(error) == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() > until:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _done(self, database: sqlite3.Connection, work: Iterable[_Work]) -> list[Any]:
        if not self._has_begun:
            assert self._begin is not None
            database.execute(self._begin)
            self._has_begun = True
        return [step(database) for step in work]

    def _expect_sound(self) -> None:
        if self._failed:
            raise StoreError(reason=FAILED)


def _key_of(query: str, values: Mapping[str, Any]) -> _Key:
    return query, frozenset(values.items())


def _rows_of(database: sqlite3.Connection, sql: str, values: Mapping[str, Any]) -> list[Row]:
    cursor = database.execute(sql, values)
    names = [column[0] for column in cursor.description or ()]
    return list(map(dict, map(zip, repeat(names), cursor.fetchall())))  # in one go: there may be thousands


def _reading(sql: str, values: Mapping[str, Any]) -> _Work:
    return lambda database: _rows_of(database, sql, values)


def _running(sql: str, values: Mapping[str, Any]) -> _Work:
    return lambda database: database.execute(sql, values).rowcount


def _expecting(sql: str, values: Mapping[str, Any], rows: int) -> _Work:
    def check(database: sqlite3.Connection) -> None:
        if len(_rows_of(database, sql, values)) != rows:
            raise NotAsExpected(reason=CHANGED)

    return check
