"""Connections of a pool: conversion of values, and an application's own pool, which a store shares with it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from psycopg import AsyncConnection
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.rows import DictRow, dict_row
from psycopg.types.numeric import FloatDumper
from psycopg.types.string import TextLoader
from psycopg_pool import AsyncConnectionPool, PoolClosed

from longthread.errors import InvalidInput
from longthread.store.driver import LEAST_CONNECTIONS


async def configure(connection: AsyncConnection[DictRow]) -> None:
    """Make a connection return the types that SQLite returns: text, numbers and bytes."""
    for name in ("json", "jsonb", "uuid", "timestamp", "timestamptz", "date", "time", "timetz", "interval"):
        connection.adapters.register_loader(name, TextLoader)
    connection.adapters.register_loader("bool", _BoolLoader)
    connection.adapters.register_loader("numeric", _NumericLoader)
    connection.adapters.register_dumper(float, _FloatDumper)


class _BoolLoader(Loader):
    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class _NumericLoader(Loader):
    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


class _FloatDumper(FloatDumper):
    """Write floats so that they stay floats: PostgreSQL reads plain decimals as numeric."""

    def quote(self, obj: Any) -> Buffer:
        return self._special.get(text := str(obj).encode(), b"'" + text + b"'::float8")


_MANY = 16
"""Connections at once where the pool sets no limit."""
_ENCODING = b"client_encoding"


class BorrowedPool:
    """Lends an application's connections with a store's settings, and gives each back as it was. It closes none."""

    def __init__(self, pool: AsyncConnectionPool[Any]) -> None:
        """Raise InvalidInput if it is no `psycopg_pool.AsyncConnectionPool`, or too small."""
        given: Any = pool  # not every program is type-checked
        if not isinstance(given, AsyncConnectionPool):
            raise InvalidInput(
                reason=f"Give an open psycopg_pool.AsyncConnectionPool. This is of type {type(given).__name__}."
            )
        size = pool.max_size or _MANY  # a null pool without a limit has 0
        if size < LEAST_CONNECTIONS:
            raise InvalidInput(
                reason=f"The pool has at most {pool.max_size} connection, and who writes may read beside it. Give it "
                f"max_size={LEAST_CONNECTIONS} or more."
            )
        self.size = size
        self.closed = False
        self._pool = pool
        self._lent: dict[_Lent, AsyncConnection[Any]] = {}

    async def getconn(self, seconds: float) -> AsyncConnection[DictRow]:
        if self.closed:
            raise PoolClosed("the store was closed")
        async with AsyncExitStack() as undoing:
            theirs = await self._pool.getconn(seconds)
            undoing.push_async_callback(self._pool.putconn, theirs)
            ours = _Lent(theirs)
            await configure(ours)
            undoing.pop_all()  # it stays lent
        self._lent[ours] = theirs
        return ours

    async def putconn(self, connection: AsyncConnection[DictRow]) -> None:
        assert isinstance(connection, _Lent)
        connection.restore()
        await self._pool.putconn(self._lent.pop(connection))

    async def close(self) -> None:
        self.closed = True


class _Lent(AsyncConnection[DictRow]):
    """A second face of an application's connection: rows, adapters and transactions as a store needs them, while those
    of the application's own face stay."""

    def __init__(self, theirs: AsyncConnection[Any]) -> None:
        pgconn = theirs.pgconn
        encoding = pgconn.parameter_status(_ENCODING)
        if encoding != b"UTF8":
            raise InvalidInput(
                reason=f"The pool's connections have the client_encoding {(encoding or b'?').decode()}, and Longthread "
                "writes UTF8. Leave it out of the pool's options."
            )
        self._handlers = pgconn.notice_handler, pgconn.notify_handler
        super().__init__(pgconn, row_factory=dict_row)
        self._autocommit = True
        self.prepare_threshold = None

    def restore(self) -> None:
        self.pgconn.notice_handler, self.pgconn.notify_handler = self._handlers

    def __del__(self, *_: Any) -> None:
        """It is not closed: the application's pool does that."""
