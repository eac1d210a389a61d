"""PostgreSQL: the backend that any number of servers share."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import AsyncConnection, errors
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, dict_row
from psycopg.types.string import TextLoader
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from longthread.errors import StoreConflict, StoreDamaged, StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from longthread.store.completion import to_the_end
from longthread.store.driver import Row, storable
from longthread.store.migrate import migrate_postgres
from longthread.store.queries import queries

CONNECTIONS = 16
"""How many connections one driver opens at most."""
FOR_READERS = 4
"""How many of them writers leave free: a writer that reads beside its transaction must not wait for other writers."""
WAIT_SECONDS = 30.0
"""How long a transaction waits for a free connection before it gives up."""
LOCK_SECONDS = 30
"""How long a statement waits for another transaction's lock before it gives up."""
CLOSE_SECONDS = 5.0
"""How long a connection may take to give up its transaction before it is thrown away."""

_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "application_name": "longthread",
    "client_encoding": "utf8",
    # A server that vanished without a word is noticed within a minute.
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 50_000,
}
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE = f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"

Connection = AsyncConnection[DictRow]


class PostgresTransaction:
    """A transaction on one connection."""

    def __init__(self, connection: Connection, *, reads: bool) -> None:
        self._connection = connection
        self._reads = reads

    async def fetch(self, query: str, **values: Any) -> list[Row]:
        with _told():
            cursor = await self._connection.execute(_statement(query, self._reads), storable(values))
            return list(await cursor.fetchall())

    async def run(self, query: str, **values: Any) -> int:
        with _told():
            return (await self._connection.execute(_statement(query, self._reads), storable(values))).rowcount

    async def later(self, query: str, **values: Any) -> None:
        await self.run(query, **values)

    async def run_all(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        given = [storable(row) for row in rows]
        if len(given) < 2:
            for values in given:
                await self.run(query, **values)
            return
        with _told():
            async with self._connection.cursor() as cursor:
                await cursor.executemany(_statement(query, self._reads), given)


class PostgresDriver:
    """A pool of connections to one database. Nothing outlives a transaction on one, so a pooler such as pgbouncer may
    hand out another for each."""

    dialect = "postgres"

    def __init__(self, where: str, pool: AsyncConnectionPool[Connection], found: int) -> None:
        self.found_version = found
        self._where = where
        self._pool = pool
        self._writers = asyncio.Semaphore(CONNECTIONS - FOR_READERS)

    @property
    def where(self) -> str:
        return self._where

    @classmethod
    async def open(cls, url: str, *, where: str | None = None) -> PostgresDriver:
        """Connect to the database of a `postgresql://` URL and bring its schema up to date.

        Args:
            where: what people are told that it is; by default the URL without its password.

        Raises:
            StoreUnavailable: it cannot be reached or used; the message says why.
            StoreTooNew: a newer Longthread wrote it.
        """
        where = where or shown(url)
        conninfo = make_conninfo("", **{**_DEFAULTS, **_parsed(url)})
        try:
            connection = await _connect(conninfo)
            try:
                found = await migrate_postgres(connection, where)
            finally:
                await connection.close()
        except (psycopg.Error, OSError) as error:
            raise StoreUnavailable(where=where, reason=_reason(error)) from None
        pool = AsyncConnectionPool(
            conninfo,
            connection_class=AsyncConnection[DictRow],
            kwargs=_SESSION,
            configure=_configure,
            min_size=1,
            max_size=CONNECTIONS,
            max_idle=300,
            open=False,
        )
        await pool.open()
        return cls(where, pool, found)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[PostgresTransaction]:
        connection = await self._begin(_READ)
        try:
            yield PostgresTransaction(connection, reads=True)
        finally:
            await to_the_end(self._give_back(connection))

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[PostgresTransaction]:
        async with self._turn():
            connection = await self._begin(_WRITE)
            try:
                yield PostgresTransaction(connection, reads=False)
                await to_the_end(_commit(connection))
            finally:
                await to_the_end(self._give_back(connection))

    @asynccontextmanager
    async def maintaining(self) -> AsyncIterator[PostgresTransaction]:
        async with self._turn():
            connection = await self._begin("SELECT 1")
            try:
                yield PostgresTransaction(connection, reads=False)
            finally:
                await to_the_end(self._give_back(connection))

    async def close(self) -> None:
        await self._pool.close()

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """One of the places that writers have among the connections."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._writers.acquire()
        except TimeoutError:
            raise StoreError(reason=_TOO_BUSY) from None
        try:
            yield
        finally:
            self._writers.release()

    async def _begin(self, begin: str) -> Connection:
        """A connection with a transaction open on it. One that broke while nobody used it is replaced."""
        tries = CONNECTIONS
        while True:
            connection = await self._connection()
            try:
                await connection.execute(begin)
                return connection
            except psycopg.Error as error:
                broken = connection.closed or connection.broken
                await to_the_end(self._give_back(connection))
                tries -= 1
                if not broken or tries < 0:
                    raise _failure(error) from None
            except BaseException:
                await to_the_end(self._give_back(connection))
                raise

    async def _connection(self) -> Connection:
        task = asyncio.current_task()
        cancelled = task.cancelling() if task else 0
        try:
            connection = await self._pool.getconn(WAIT_SECONDS)
        except PoolTimeout:
            raise StoreError(reason=_TOO_BUSY) from None
        except psycopg.Error as error:
            raise _failure(error) from None
        if task and task.cancelling() > cancelled:
            # Python 3.11's `wait_for`, with which the pool waits, forgets a cancellation that comes with its result.
            await to_the_end(self._pool.putconn(connection))
            raise asyncio.CancelledError
        return connection

    async def _give_back(self, connection: Connection) -> None:
        """Roll back what was not committed, and let the next one have the connection if it is still good."""
        try:
            if connection.pgconn.transaction_status != TransactionStatus.IDLE:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await connection.execute("ROLLBACK")
        except (psycopg.Error, TimeoutError):
            await connection.close()
        await self._pool.putconn(connection)


_TOO_BUSY = (
    f"no connection to PostgreSQL was free or could be made within {WAIT_SECONDS:.0f} seconds. Is the server running, "
    "and does it allow more connections (max_connections)?"
)


async def _commit(connection: Connection) -> None:
    if connection.pgconn.transaction_status == TransactionStatus.INERROR:
        # COMMIT would roll back, and say nothing.
        raise StoreError(reason="a statement of the transaction failed; nothing of it was written.")
    try:
        await connection.execute("COMMIT")
    except psycopg.Error as error:
        if error.sqlstate is not None and not (connection.closed or connection.broken):
            raise _failure(error) from None
        raise StoreError(
            reason=f"the connection was lost while the transaction was being committed ({_reason(error)}) Whether it "
            "was written is not known; repeating it is safe."
        ) from None


async def _connect(conninfo: str) -> Connection:
    connection = await AsyncConnection.connect(conninfo, **_SESSION)
    await _configure(connection)
    return connection


_SESSION: dict[str, Any] = {
    # Transactions are begun and ended by us, in as few round trips as can be; and no statement is prepared on the
    # server, where a pooler could hand it to another client.
    "autocommit": True,
    "prepare_threshold": None,
    "row_factory": dict_row,
}


async def _configure(connection: Connection) -> None:
    """What PostgreSQL has more types for comes as what SQLite gives: text, numbers and bytes."""
    for name in ("json", "jsonb", "uuid", "timestamp", "timestamptz", "date", "time", "timetz", "interval"):
        connection.adapters.register_loader(name, TextLoader)
    connection.adapters.register_loader("bool", _BoolLoader)
    connection.adapters.register_loader("numeric", _NumericLoader)


class _BoolLoader(Loader):
    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class _NumericLoader(Loader):
    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


@contextmanager
def _told() -> Iterator[None]:
    """Errors of the database as errors of the store."""
    try:
        yield
    except psycopg.Error as error:
        raise _failure(error) from error


_FAILURES: dict[type[psycopg.Error], type[StoreError]] = {
    errors.UniqueViolation: StoreConflict,
    errors.DeadlockDetected: StoreConflict,
    errors.SerializationFailure: StoreConflict,
    errors.DiskFull: StoreFull,
    errors.ReadOnlySqlTransaction: StoreReadOnly,
    errors.InsufficientPrivilege: StoreReadOnly,
    errors.DataCorrupted: StoreDamaged,
    errors.IndexCorrupted: StoreDamaged,
}


def _failure(error: psycopg.Error) -> StoreError:
    """What a statement's error is called here."""
    return _FAILURES.get(type(error), StoreError)(reason=_reason(error))


def _reason(error: BaseException) -> str:
    if isinstance(error, errors.LockNotAvailable):
        return f"another transaction held its lock for more than {LOCK_SECONDS} seconds."
    diag = getattr(error, "diag", None)
    text = (diag.message_primary if diag is not None else None) or str(error) or type(error).__name__
    text = " ".join(text.split())
    return text if text.endswith(".") else f"{text}."


def shown(url: str) -> str:
    """A URL as people may see it: without password and options.

    Raises:
        StoreUnavailable: it cannot be read.
    """
    given = _parsed(url)
    user, host, port = given.get("user"), given.get("host") or given.get("hostaddr") or "", given.get("port")
    place = f"{user}@" * bool(user) + str(host) + f":{port}" * bool(port)
    return f"postgresql://{place}/{given.get('dbname') or user or ''}"


def _parsed(url: str) -> dict[str, Any]:
    plain = re.sub(r"^postgres(?:ql)?(?:\+psycopg)?://", "postgresql://", url)
    try:
        given: dict[str, Any] = dict(conninfo_to_dict(plain))
    except psycopg.Error:
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


_PART = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | ::\s*\w+ | :(?P<name>[A-Za-z_]\w*) | %""",
    re.VERBOSE | re.DOTALL,
)


def translated(sql: str) -> str:
    """A query with psycopg's placeholders, `%(name)s`, in the place of `:name`."""

    def placeholder(match: re.Match[str]) -> str:
        name = match["name"]
        return f"%({name})s" if name else match[0].replace("%", "%%")

    return _PART.sub(placeholder, sql)


@lru_cache(maxsize=2048)
def _statement(query: str, reads: bool) -> bytes:
    """A query as psycopg takes it. A snapshot needs no locks, and may not take any."""
    sql = translated(queries("postgres")[query])
    return (_LOCK.sub("", sql) if reads else sql).encode()


_LOCK = re.compile(r"\s+FOR (?:NO KEY )?UPDATE(?: OF [\w, ]+)?(?=;?$)")
