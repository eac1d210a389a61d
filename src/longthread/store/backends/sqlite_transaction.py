"""Transactions on a SQLite connection, in the calling thread or in the connection's own, which leaves the event loop to
others."""

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

FEW = 16
"""Up to this many rows are written in the calling thread."""
MANY = 64
"""A query with a limit up to this many rows is quick."""
SMALL = 65_536
"""A statement is quick up to this many characters or bytes per value."""
FAILED = "a statement of the transaction failed; nothing of it was written."

_Key = tuple[str, frozenset[tuple[str, Any]]]
"""A query and its values."""


class SqliteTransaction:
    """A transaction on one connection."""

    def __init__(self, connection: StoreConnection, *, off_loop: bool = False) -> None:
        """With `off_loop`, no statement runs in the calling thread."""
        self._connection = connection
        self._off_loop = off_loop
        self._queries = queries("sqlite")
        self._asked: dict[_Key, tuple[str, Mapping[str, Any]]] = {}
        self._found: dict[_Key, list[Row]] = {}
        self.failed = False

    async def fetch(self, query: str, **values: Any) -> list[Row]:
        sql, given = self._queries[query], storable(values)
        self._expect_sound()
        try:
            if self._is_quick(query, given):
                return rows_of(self._connection.database, sql, given)
            if (key := key_of(query, given)) in self._asked:
                await self._find_asked()
            if key in self._found:
                return self._found.pop(key)
            return await self._connection.apart(lambda database: rows_of(database, sql, given))
        except ERRORS as error:
            raise self._translate_error(error) from error

    async def fetch_all(self, *asked: QueryCall, last: bool = False) -> list[list[Row]]:
        return [await self.fetch(query, **values) for query, values in asked]

    async def ahead(self, *asked: QueryCall) -> None:
        """Fetch all queries with the first one: each hand-over to the connection's thread costs a wait."""
        for query, values in asked:
            given = storable(values)
            if not self._is_quick(query, given):
                self._asked[key_of(query, given)] = self._queries[query], given

    async def _find_asked(self) -> None:
        asked, self._asked = self._asked, {}
        found = await self._connection.apart(lambda database: [rows_of(database, *each) for each in asked.values()])
        self._found |= zip(asked, found, strict=True)

    async def run(self, query: str, **values: Any) -> int:
        sql, given = self._queries[query], storable(values)
        self._expect_sound()
        self._found.clear()
        try:
            if self._is_quick(query, given):
                return self._connection.database.execute(sql, given).rowcount
            return await self._connection.apart(lambda database: database.execute(sql, given).rowcount)
        except ERRORS as error:
            raise self._translate_error(error) from error

    async def later(self, query: str, **values: Any) -> None:
        await self.run(query, **values)

    async def expect(self, query: str, rows: int, **values: Any) -> None:
        if len(await self.fetch(query, **values)) != rows:
            self.failed = True
            raise NotAsExpected(reason=CHANGED)

    async def run_all(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        given = [storable(row) for row in rows]
        is_quick = len(given) <= FEW and all(self._is_quick(query, values) for values in given)
        sql = self._queries[query]
        self._expect_sound()
        self._found.clear()
        try:
            if is_quick:
                self._connection.database.executemany(sql, given).close()
            else:
                await self._connection.apart(lambda database: database.executemany(sql, given).close())
        except ERRORS as error:
            raise self._translate_error(error) from error

    def _is_quick(self, query: str, values: Mapping[str, Any]) -> bool:
        if (
            self._off_loop
            or self._connection.broken_off
            or query not in self._queries.quick
            or values.get("limit", 0) > MANY
        ):
            return False
        # A loop: this runs for each statement, and a generator would take most of the time.
        for value in values.values():
            kind = type(value)
            if (kind is str or kind is bytes) and len(value) > SMALL:
                return False
        return True

    def _expect_sound(self) -> None:
        if self.failed:
            raise StoreError(reason=FAILED)

    def _translate_error(self, error: Exception) -> StoreError:
        """Return a database error as a store error. SQLite may have ended the transaction already."""
        self.failed = True
        return failure(error)


def key_of(query: str, values: Mapping[str, Any]) -> _Key:
    return query, frozenset(values.items())


def rows_of(database: sqlite3.Connection, sql: str, values: Mapping[str, Any]) -> list[Row]:
    cursor = database.execute(sql, values)
    names = [column[0] for column in cursor.description or ()]
    return list(map(dict, map(zip, repeat(names), cursor.fetchall())))  # in one go: there may be thousands


LONGEST_PAUSE = 0.025
"""Longest interval in seconds between retries."""

READ = "BEGIN"
"""How a transaction begins that only reads."""

_Work = Callable[[sqlite3.Connection], Any]
"""Work in the connection's thread."""


class OffLoopTransaction(SqliteTransaction):
    """A transaction whose statements all run in the connection's thread, in few hand-overs.

    `begin` and statements without a result go with the next one that somebody waits for, at the latest with the
    commit. So most transactions are one hand-over, as they are one message on PostgreSQL.
    """

    def __init__(self, connection: StoreConnection, begin: str) -> None:
        super().__init__(connection, off_loop=True)
        self._begin = begin
        self._only_reads = begin == READ
        self._has_begun = False
        self._has_ended = False
        self._waiting: list[_Work] = []

    async def fetch(self, query: str, **values: Any) -> list[Row]:
        [rows] = await self.fetch_all((query, values))
        return rows

    async def fetch_all(self, *asked: QueryCall, last: bool = False) -> list[list[Row]]:
        keys = []
        for query, values in asked:
            sql, given = self._queries[query], storable(values)
            keys.append(key_of(query, given))
            if keys[-1] not in self._found:
                self._asked[keys[-1]] = sql, given
        if any(key in self._asked for key in keys):
            await self._find_asked(last=last and self._only_reads)
        rows = [self._found[key] for key in keys]
        for key in keys:
            self._found.pop(key, None)
        return rows

    async def _find_asked(self, *, last: bool = False) -> None:
        asked, self._asked = self._asked, {}
        end = (sqlite3.Connection.rollback,) if last else ()
        found = await self._send(*(_reading(sql, given) for sql, given in asked.values()), *end)
        self._has_ended = last
        self._found |= zip(asked, found[: len(asked)], strict=True)

    async def run(self, query: str, **values: Any) -> int:
        self._found.clear()
        [count] = await self._send(_running(self._queries[query], storable(values)))
        return int(count)

    async def later(self, query: str, **values: Any) -> None:
        self._later(_running(self._queries[query], storable(values)))

    async def expect(self, query: str, rows: int, **values: Any) -> None:
        self._later(_expecting(self._queries[query], storable(values), rows))

    async def run_all(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        sql, given = self._queries[query], [storable(row) for row in rows]
        if given:
            self._later(lambda database: database.executemany(sql, given).close())

    async def commit(self) -> None:
        """Commit what the transaction has done, with the statements that wait. Raises `StoreError`: it has failed."""
        if self._has_begun or self._waiting:
            await self._send(sqlite3.Connection.commit)
            self._has_ended = True

    async def end(self) -> None:
        """Roll back what was not committed, without waiting for it: the connection's next work comes after it.

        After a cancellation, the thread may begin the transaction only now.
        """
        if (self._has_begun or self._connection.broken_off) and not self._has_ended:
            await self._connection.rollback(waits=False)

    def _later(self, step: _Work) -> None:
        self._expect_sound()
        self._found.clear()
        self._waiting.append(step)

    async def _send(self, *steps: _Work) -> list[Any]:
        """Do what waits and then `steps`; return the results of these."""
        self._expect_sound()
        work, self._waiting = [*self._waiting, *steps], []
        until, pause = time.monotonic() + BUSY_SECONDS, 0.001
        while True:
            try:
                return (await self._connection.apart(lambda database: self._done(database, work)))[-len(steps) :]
            except NotAsExpected:
                self.failed = True
                raise
            except ERRORS as error:
                is_busy = not self._has_begun and code_of(error) == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() > until:
                    raise self._translate_error(error) from error
            await asyncio.sleep(pause)  # another process writes
            pause = min(2 * pause, LONGEST_PAUSE)

    def _done(self, database: sqlite3.Connection, work: Iterable[_Work]) -> list[Any]:
        if not self._has_begun:
            database.execute(self._begin)
            self._has_begun = True
        return [step(database) for step in work]


def _reading(sql: str, values: Mapping[str, Any]) -> _Work:
    return lambda database: rows_of(database, sql, values)


def _running(sql: str, values: Mapping[str, Any]) -> _Work:
    return lambda database: database.execute(sql, values).rowcount


def _expecting(sql: str, values: Mapping[str, Any], rows: int) -> _Work:
    def check(database: sqlite3.Connection) -> None:
        if len(rows_of(database, sql, values)) != rows:
            raise NotAsExpected(reason=CHANGED)

    return check
