"""The PostgreSQL backend, which many servers can share, and the URLs of its databases."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from longthread.errors import StoreError, StoreUnavailable
from longthread.loop_bridge import to_the_end
from longthread.metrics import STORE_SECONDS
from longthread.store.backends.postgres_pool import BorrowedPool, configure
from longthread.store.backends.postgres_signals import PostgresSignals
from longthread.store.backends.postgres_transaction import WRITE, PgConnection, PostgresTransaction, failure, reason_of
from longthread.store.schema import migrate_postgres

_UNKNOWN = re.compile(r'invalid URI query parameter: "(\w+)"')


def show_address(url: str) -> str:
    """Return a URL without password and options. Raises `StoreUnavailable` if it is malformed."""
    given = parse_address(url)
    user, host, port = given.get("user"), given.get("host") or given.get("hostaddr") or "", given.get("port")
    place = f"{user}@" * bool(user) + str(host) + f":{port}" * bool(port)
    return f"postgresql://{place}/{given.get('dbname') or user or ''}"


def parse_address(url: str) -> dict[str, Any]:
    """Return a URL's parts under libpq's names. Raises `StoreUnavailable` if it is malformed."""
    plain = re.sub(r"^postgres(?:ql)?(?:\+psycopg)?://", "postgresql://", url)
    try:
        given: dict[str, Any] = dict(conninfo_to_dict(plain))
    except psycopg.Error as error:
        # Before an @, it may be part of a password.
        if (unknown := _UNKNOWN.search(str(error))) and "@" not in plain.partition("?")[2]:
            raise StoreUnavailable(
                where="postgresql://…",
                reason=f"the URL has an option {unknown[1]}, which libpq does not know. Leave it out.",
            ) from None
        given = {"host": "@"}
    # A password with an @ or a / in it ends too early for libpq, and the rest of it stands elsewhere.
    misread = "@" in f"{given.get('host')}{given.get('dbname')}"
    if misread or not re.fullmatch(r"[\d,]*", str(given.get("port") or "")):
        raise StoreUnavailable(
            where="postgresql://…",
            reason="the URL cannot be read. It is written postgresql://user:password@host:port/database, with "
            "special characters in a name or password percent-encoded (@ is %40, / is %2F).",
        )
    return given


CONNECTIONS = 16
"""Maximum per driver, where no other is given."""
FOR_READERS = 4
"""Connections that writers leave free, of fewer a quarter, but one: a writer that also reads must not wait for other
writers."""
KEPT_TIMES = 256
"""Uses of a connection before it returns to the pool, which replaces old ones."""
WAIT_SECONDS = 30.0
"""A transaction's timeout for a free connection."""
RECONNECT_SECONDS = 5.0
"""The pool's limit on retries with growing intervals. Then it starts again, to find a server soon after a long
outage."""
CLOSE_SECONDS = 5.0
"""Timeout of a rollback, after which the connection is closed."""

_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "application_name": "longthread",
    "client_encoding": "utf8",
    # Notice within a minute that a server vanished silently.
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 50_000,
}
_READ = (b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",)
_ALONE = (b"SELECT 1",)


class PostgresDriver:
    """A connection pool for one database. It keeps no session state, so poolers such as pgbouncer work."""

    dialect = "postgres"

    def __init__(
        self,
        where: str,
        pool: AsyncConnectionPool[PgConnection] | BorrowedPool,
        found: int,
        first: list[PgConnection],
        size: int,
        conninfo: str = "",
    ) -> None:
        self.found_version = found
        # An application's pool alone knows how to connect.
        self.signals = PostgresSignals(conninfo, self._alone) if conninfo else None
        self._conninfo = conninfo
        self._where = where
        self._pool = pool
        self._first = first
        # At most one idle connection: the pool takes longer than many statements.
        self._kept: list[PgConnection] = []
        self._handed_on = 0
        self._asking = 0
        self._size = size
        self._writers = asyncio.Semaphore(size - min(FOR_READERS, max(1, size // 4)))

    @property
    def where(self) -> str:
        return self._where

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        where: str = "",
        creates: bool = True,
        migrates: bool = True,
        pool_size: int | None = None,
    ) -> PostgresDriver:
        """Connect to a `postgresql://` URL and migrate its schema.

        Args:
            where: the name shown to people; by default the URL without its password.
            creates, migrates, pool_size: see `open_store`.

        Raises:
            StoreUnavailable: it cannot be reached or used; the message says why.
            StoreTooNew: a newer Longthread wrote it.
        """
        where = where or show_address(url)
        conninfo = make_conninfo("", **{**_DEFAULTS, **parse_address(url)})
        try:
            async with AsyncExitStack() as opened:
                connection = await _connect(conninfo)
                opened.push_async_callback(connection.close)
                found = await migrate_postgres(connection, where, creates=creates, migrates=migrates)
                opened.pop_all()  # it stays open
        except (psycopg.Error, OSError) as error:
            raise StoreUnavailable(where=where, reason=reason_of(error)) from None
        first, size = [connection], CONNECTIONS if pool_size is None else pool_size
        drivers: list[PostgresDriver] = []

        async def try_again(_: Any) -> None:
            await drivers[0].try_again()

        pool: AsyncConnectionPool[PgConnection] = AsyncConnectionPool(
            conninfo,
            connection_class=_Pooled,
            kwargs=_SESSION | {"first": first},
            configure=configure,
            min_size=1,
            max_size=size,
            max_idle=300,
            reconnect_timeout=RECONNECT_SECONDS,
            reconnect_failed=try_again,
            open=False,
        )
        drivers.append(cls(where, pool, found, first, size, conninfo))
        await pool.open()
        return drivers[0]

    @classmethod
    async def over(cls, pool: AsyncConnectionPool[Any]) -> PostgresDriver:
        """Share an application's open pool, which stays open, and migrate the schema.

        Raises:
            InvalidInput: it is no such pool, or too small.
            StoreUnavailable: the database cannot be reached or used; the message says why.
            StoreTooNew: a newer Longthread wrote it.
        """
        borrowed = BorrowedPool(pool)
        where = "the database of the pool"
        try:
            connection = await borrowed.getconn(WAIT_SECONDS)
            try:
                found = await migrate_postgres(connection, where)
            finally:
                await to_the_end(borrowed.putconn(connection))
        except PoolClosed:
            raise StoreUnavailable(where=where, reason="the pool is not open. Await its open() first.") from None
        except (psycopg.Error, OSError) as error:
            raise StoreUnavailable(where=where, reason=reason_of(error)) from None
        return cls(where, borrowed, found, [], borrowed.size)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[PostgresTransaction]:
        with STORE_SECONDS.time_block("read"):
            tx = await self._transaction(_READ, reads=True)
            try:
                yield tx
            finally:
                await self._end_reading(tx)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[PostgresTransaction]:
        began = time.perf_counter()
        await self._take_turn()
        try:
            tx, done = await self._transaction(WRITE, reads=False), False
            try:
                yield tx
                done = True
            finally:
                await (self._finish(tx) if done else self._give_back(tx))
        finally:
            self._writers.release()
            STORE_SECONDS.note("write", seconds=time.perf_counter() - began)

    @asynccontextmanager
    async def maintaining(self) -> AsyncIterator[PostgresTransaction]:
        await self._take_turn()
        try:
            tx = await self._transaction(_ALONE, reads=False, alone=True)
            try:
                yield tx
            finally:
                await self._give_back(tx)
        finally:
            self._writers.release()

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[PostgresTransaction]:
        """Open no transaction, for statements that may be repeated: each is sent at once, without a look first at the
        connection."""
        tx = await self._transaction(_ALONE, reads=False)
        try:
            yield tx
        finally:
            await self._give_back(tx)

    @asynccontextmanager
    async def dedicated(self) -> AsyncIterator[PostgresTransaction]:
        if isinstance(self._pool, BorrowedPool):  # which alone knows how to connect
            async with self.maintaining() as alone:
                yield alone
            return
        try:
            connection = await _connect(self._conninfo)
        except (psycopg.Error, OSError) as error:
            raise StoreError(reason=reason_of(error)) from None
        try:
            yield PostgresTransaction(connection, reads=False, alone=True)
        finally:
            await to_the_end(connection.close())

    async def close(self) -> None:
        await self._pool.close()
        while self._kept:  # which the pool has handed out
            await self._kept.pop().close()
        for connection in self._first:  # the pool has not come to it
            await connection.close()

    async def try_again(self) -> None:
        """Restart a pool that gave up connecting while tasks wait: it only retries when asked for a connection."""
        if self._asking and not self._pool.closed:
            with suppress(psycopg.Error):
                await self._pool.putconn(await self._pool.getconn(_AT_ONCE))

    async def _take_turn(self) -> None:
        """Wait for one of the writers' connections."""
        if not self._writers.locked():
            await self._writers.acquire()  # at once
            return
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._writers.acquire()
        except TimeoutError:
            raise StoreError(reason=_TOO_BUSY) from None

    async def _transaction(self, begin: Sequence[bytes], **how: bool) -> PostgresTransaction:
        left = self._size

        async def renew(tx: PostgresTransaction) -> bool:
            nonlocal left
            left -= 1
            # Return it first: all connections may be broken, and in use.
            await self._give_back(tx)
            tx.held = await self._connection()
            return left >= 0

        return PostgresTransaction(await self._connection(), begin=begin, renew=renew, **how)

    async def _finish(self, tx: PostgresTransaction) -> None:
        try:
            await to_the_end(tx.commit())
        finally:
            await self._give_back(tx)

    async def _connection(self) -> PgConnection:
        if self._kept:
            return self._kept.pop()
        task = asyncio.current_task()
        cancelled = task.cancelling() if task else 0
        self._asking += 1
        try:
            connection = await self._pool.getconn(WAIT_SECONDS)
        except PoolTimeout:
            raise StoreError(reason=_TOO_BUSY) from None
        except psycopg.Error as error:
            raise failure(error) from None
        finally:
            self._asking -= 1
        if task and task.cancelling() > cancelled:
            # Python 3.11's `wait_for`, with which the pool waits, forgets a cancellation that comes with its result.
            await to_the_end(self._pool.putconn(connection))
            raise asyncio.CancelledError
        return connection

    async def _end_reading(self, tx: PostgresTransaction) -> None:
        try:
            await tx.forget()
        finally:
            await self._give_back(tx)

    async def _give_back(self, tx: PostgresTransaction) -> None:
        """Roll back uncommitted work, and reuse the connection if it is still good."""
        connection, tx.held = tx.held, None
        if connection is not None and self._keeps(connection):
            self._kept.append(connection)
        elif connection is not None:
            await to_the_end(self._put_back(connection))

    def _keeps(self, connection: PgConnection) -> bool:
        """Return whether to keep the connection outside of the pool: no task waits for one, and none is kept yet."""
        self._handed_on = (self._handed_on + 1) % KEPT_TIMES
        borrowed = isinstance(self._pool, BorrowedPool)  # whose other users may be waiting for it
        wanted = self._handed_on and not self._kept and not self._asking and not self._pool.closed and not borrowed
        return bool(wanted) and connection.pgconn.transaction_status == TransactionStatus.IDLE

    async def _put_back(self, connection: PgConnection) -> None:
        try:
            if connection.pgconn.transaction_status != TransactionStatus.IDLE:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await connection.execute("ROLLBACK")
        except (psycopg.Error, TimeoutError):
            await connection.close()
        await self._pool.putconn(connection)


_AT_ONCE = 0.001
"""Seconds."""
_TOO_BUSY = (
    f"no connection to PostgreSQL was free or could be made within {WAIT_SECONDS:.0f} seconds. Is the server running, "
    "and does it allow more connections (max_connections)?"
)


class _Pooled(AsyncConnection[DictRow]):
    """A pool's connections. The first is the one that migrated the schema."""

    @classmethod
    async def connect(  # type: ignore[override]
        cls, conninfo: str = "", *, first: list[PgConnection], **session: Any
    ) -> PgConnection:
        return first.pop() if first else await super().connect(conninfo, **session)


async def _connect(conninfo: str) -> PgConnection:
    connection = await AsyncConnection.connect(conninfo, **_SESSION)
    await configure(connection)
    return connection


_SESSION: dict[str, Any] = {
    # Transactions are begun and ended by us, in as few round trips as can be; and no statement is prepared on the
    # server, where a pooler could hand it to another client.
    "autocommit": True,
    "prepare_threshold": None,
    "row_factory": dict_row,
}
