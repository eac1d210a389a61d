"""Transactions on a SQLite connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Any

from longthread.errors import NotAsExpected, StoreError
from longthread.store.backends.sqlite_connection import StoreConnection
from longthread.store.backends.sqlite_errors import ERRORS, failure
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
            raise self._told(error) from error

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
            raise self._told(error) from error

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
            raise self._told(error) from error

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

    def _told(self, error: Exception) -> StoreError:
        """Return a database error as a store error. SQLite may have ended the transaction already."""
        self.failed = True
        return failure(error)


def key_of(query: str, values: Mapping[str, Any]) -> _Key:
    return query, frozenset(values.items())


def rows_of(database: sqlite3.Connection, sql: str, values: Mapping[str, Any]) -> list[Row]:
    cursor = database.execute(sql, values)
    names = [column[0] for column in cursor.description or ()]
    return list(map(dict, map(zip, repeat(names), cursor.fetchall())))  # in one go: there may be thousands
