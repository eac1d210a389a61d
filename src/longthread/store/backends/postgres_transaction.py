"""Transactions on a PostgreSQL connection: queries sent before their rows are awaited, and errors as store errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection, AsyncCursor, errors
from psycopg.adapt import Transformer
from psycopg.rows import DictRow
from psycopg_pool import PoolClosed

from longthread.errors import (
    CommitUnknown,
    NotAsExpected,
    StoreClosed,
    StoreConflict,
    StoreDamaged,
    StoreDisconnected,
    StoreError,
    StoreFull,
    StoreReadOnly,
    ValueRefused,
)
from longthread.loop_bridge import to_the_end
from longthread.store.driver import CHANGED, QueryCall, Row, sentence, storable
from longthread.store.queries import parts, queries, with_names

_FAILURES: dict[type[psycopg.Error], type[StoreError]] = {
    PoolClosed: StoreClosed,
    errors.UniqueViolation: StoreConflict,
    errors.DeadlockDetected: StoreConflict,
    errors.SerializationFailure: StoreConflict,
    errors.DiskFull: StoreFull,
    errors.ReadOnlySqlTransaction: StoreReadOnly,
    errors.InsufficientPrivilege: StoreReadOnly,
    errors.DataCorrupted: StoreDamaged,
    errors.IndexCorrupted: StoreDamaged,
    errors.AdminShutdown: StoreDisconnected,
    errors.CrashShutdown: StoreDisconnected,
    psycopg.OperationalError: StoreDisconnected,  # itself, and no class below it: what the server has not said
}


_REFUSED = (psycopg.DataError, errors.CheckViolation, errors.NotNullViolation, errors.ForeignKeyViolation)


def failure(error: psycopg.Error) -> StoreError:
    other = ValueRefused if isinstance(error, _REFUSED) else StoreError
    kind = _FAILURES.get(type(error), other)
    return StoreClosed() if kind is StoreClosed else kind(reason=reason_of(error))


def reason_of(error: BaseException) -> str:
    if isinstance(error, errors.LockNotAvailable):
        return "another transaction held its lock for too long."
    diag = getattr(error, "diag", None)
    text = (diag.message_primary if diag is not None else None) or str(error) or type(error).__name__
    text = " ".join(text.split())
    return sentence(text)


class Ahead:
    """Prefetched rows, in flight or unread. While any are in flight, their connection is in use."""

    def __init__(self) -> None:
        self._statements: Sequence[bytes] = ()
        self._coming: asyncio.Task[list[list[Row]]] | None = None
        self._found: dict[bytes, list[Row]] = {}

    def __bool__(self) -> bool:
        return self._coming is not None or bool(self._found)

    async def send(self, statements: Sequence[bytes], finding: Coroutine[Any, Any, list[list[Row]]]) -> None:
        """Start to fetch: `finding` returns one list of rows per statement."""
        self._statements, self._coming = statements, asyncio.ensure_future(finding)
        await asyncio.sleep(0)  # by then it is sent

    async def arrive(self) -> None:
        """Wait for rows in flight. Raises whatever fetching raised."""
        if self._coming is not None:
            coming, self._coming = self._coming, None
            self._found |= zip(self._statements, await coming, strict=True)

    async def rows_of(self, statement: bytes) -> list[Row] | None:
        """Take a statement's rows, once; None if it was not prefetched. Waits for rows in flight."""
        if statement not in self._found:
            await self.arrive()
        return self._found.pop(statement, None)

    async def forget(self) -> None:
        """Drop all rows, and cancel what is in flight."""
        self._found = {}
        if self._coming is not None:
            coming, self._coming = self._coming, None
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)


PgConnection = AsyncConnection[DictRow]
LARGE = 65_536
"""Characters or bytes from which a value is sent by itself."""
FEW = 16
"""Rows up to which a statement for each is sent with the next one; more are sent as a batch of their own."""
LOCK_SECONDS = 30
"""A statement's timeout for another transaction's lock."""
WRITE = (b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", b"SET LOCAL lock_timeout = '%ds'" % LOCK_SECONDS)
_DECLARE, _FETCH = b"DECLARE found BINARY NO SCROLL CURSOR FOR\n", b";\nFETCH ALL FROM found;\nCLOSE found"


class PostgresTransaction:
    """A transaction on one connection.

    `begin` and statements without a result are sent with the next statement, to save round trips; with `alone`, each is
    sent by itself. If the connection broke while idle, `renew` replaces it on first use.
    """

    def __init__(
        self,
        connection: PgConnection,
        *,
        reads: bool,
        begin: Sequence[bytes] = (),
        alone: bool = False,
        renew: Callable[[PostgresTransaction], Awaitable[bool]] | None = None,
    ) -> None:
        self.held: PgConnection | None = connection
        self._reads = reads
        self._waiting = list(begin)
        self._alone = alone
        self._renew = renew
        self._has_begun = not begin
        self._expects = False
        self._failed = False
        self._ahead = Ahead()

    @property
    def connection(self) -> PgConnection:
        assert self.held is not None, "it has been given back"
        return self.held

    async def fetch(self, query: str, **values: Any) -> list[Row]:
        given = storable(values)
        if self._alone or _is_large(given):
            return list(await (await self._run(query, given)).fetchall())
        asked = self._write_query(query, given)
        found = await self._ahead.rows_of(asked)
        return (await self._fetch_asked([asked]))[0] if found is None else found

    async def fetch_all(self, *asked: QueryCall, last: bool = False) -> list[list[Row]]:
        if self._alone or self._ahead or any(_is_large(values) for _, values in asked):
            return [await self.fetch(query, **values) for query, values in asked]
        return await self._fetch_asked(
            [self._write_query(query, storable(values)) for query, values in asked], last=last
        )

    async def ahead(self, *asked: QueryCall) -> None:
        await self._ahead.arrive()
        if self._reads and asked and not any(_is_large(values) for _, values in asked):
            statements = [self._write_query(query, storable(values)) for query, values in asked]
            await self._ahead.send(statements, self._fetch_asked(statements))

    async def forget(self) -> None:
        """Stop waiting for prefetched rows."""
        if self._ahead:
            await to_the_end(self._ahead.forget())

    async def _fetch_asked(self, asked: Sequence[bytes], *, last: bool = False) -> list[list[Row]]:
        first = len(self._waiting)
        # A read transaction has nothing to commit: its end may be lost.
        cursor = await self._send([*self._waiting, *asked, *[b"COMMIT"] * (last and self._reads)], skip=first)
        found: list[list[Row]] = []
        for statement in asked:
            has_cursor = statement.startswith(_DECLARE)
            if has_cursor:
                cursor.nextset()
            found.append(list(await cursor.fetchall()))
            for _ in range(1 + has_cursor):
                cursor.nextset()
        return found

    def _write_query(self, query: str, values: Mapping[str, Any]) -> bytes:
        """Return a query with its values. Without a cursor, bytes arrive as text, twice as long."""
        bound = self._bind_values(query, values)
        return b"%b%b%b" % (_DECLARE, bound, _FETCH) if query in queries("postgres").bulky else bound

    async def run(self, query: str, **values: Any) -> int:
        return (await self._run(query, values)).rowcount

    async def later(self, query: str, **values: Any) -> None:
        given = storable(values)
        if self._alone or self._reads or _is_large(given):
            await self._run(query, given)
        else:
            self._waiting.append(self._bind_values(query, given))

    async def expect(self, query: str, rows: int, **values: Any) -> None:
        # Division by zero fails, and with it all later statements.
        found = b"SELECT count(*) = %d FROM (%b) AS found" % (rows, self._bind_values(query, storable(values)))
        self._waiting.append(b"SELECT 1 / CAST((%b) AS INTEGER)" % found)
        self._expects = True

    async def run_all(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        given = [storable(row) for row in rows]
        await self._ahead.arrive()
        if len(given) <= FEW and not (self._reads or self._alone or any(map(_is_large, given))):
            self._waiting += [self._bind_values(query, values) for values in given]
            return
        await self._flush()
        with self._translate_errors():
            async with self.connection.cursor() as cursor:
                await cursor.executemany(with_names(query, self._reads), given)

    async def commit(self) -> None:
        """Commit any changes. Raises `StoreError` after a rollback, or `CommitUnknown` if the outcome is unknown."""
        if not self._failed and not self._has_begun and len(self._waiting) <= len(WRITE):
            return
        if not self._has_begun and not self._expects and not self._failed:
            await self._flush()
        if self._failed:
            # COMMIT would silently roll back.
            raise StoreError(reason="a statement of the transaction failed; nothing of it was written.")
        try:
            await self.connection.execute(b";\n".join([*self._waiting, b"COMMIT"]))
        except psycopg.Error as error:
            if error.sqlstate is not None and not (self.connection.closed or self.connection.broken):
                raise self._failure(error) from None
            if not self._has_begun:
                raise NotAsExpected(reason=f"the connection was lost ({reason_of(error)})") from None
            raise CommitUnknown(reason=reason_of(error)) from None

    async def _run(self, query: str, values: Mapping[str, Any]) -> AsyncCursor[DictRow]:
        given = storable(values)
        await self._ahead.arrive()
        if _is_large(given):
            # As bytes, which bind sends unchanged, instead of text twice as long.
            await self._flush()
            with self._translate_errors():
                return await self.connection.execute(with_names(query, self._reads), given)
        if self._alone:
            await self._flush()
        return await self._send([*self._waiting, self._bind_values(query, given)])

    async def _flush(self) -> None:
        if self._waiting:
            await self._send(self._waiting)

    async def _send(self, statements: Sequence[bytes], *, skip: int | None = None) -> AsyncCursor[DictRow]:
        """Send statements in one message; return a cursor at the last result, or at the one after the first `skip`."""
        with self._translate_errors():
            while True:
                try:
                    cursor = await self.connection.execute(b";\n".join(statements))
                    break
                except psycopg.Error:
                    if not await self._is_renewed():
                        raise
            self._has_begun, self._waiting = True, []
            for _ in range(len(statements) - 1 if skip is None else skip):
                cursor.nextset()
            return cursor

    async def _is_renewed(self) -> bool:
        """Replace a broken connection that has done nothing yet; return whether it did."""
        if self._has_begun or self._renew is None or not (self.connection.closed or self.connection.broken):
            return False
        return await self._renew(self)

    def _bind_values(self, query: str, values: Mapping[str, Any]) -> bytes:
        texts, names = parts(query, self._reads)
        bound = [texts[0]]
        with self._translate_errors():
            # A transformer is bound to a connection's encoding and adapters.
            literal = Transformer.from_context(self.connection).as_literal
            for name, text in zip(names, texts[1:], strict=True):
                value = values[name]
                bound += b"NULL" if value is None else literal(value), text
        return b"".join(bound)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise database errors as store errors. Afterwards, the transaction can only be rolled back."""
        try:
            yield
        except psycopg.Error as error:
            self._failed = True
            raise self._failure(error) from error

    def _failure(self, error: psycopg.Error) -> StoreError:
        if self._expects and isinstance(error, errors.DivisionByZero):
            return NotAsExpected(reason=CHANGED)
        told = failure(error)
        if self._alone and isinstance(told, StoreDisconnected):
            return CommitUnknown(reason=told.reason)
        return told


def _is_large(values: Mapping[str, Any]) -> bool:
    return any(type(value) in (str, bytes) and len(value) > LARGE for value in values.values())
