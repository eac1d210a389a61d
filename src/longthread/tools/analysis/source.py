"""A source: a database that may be asked, and never changed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from longthread.errors import SourceError, SqlTimeout
from longthread.tools.analysis.engine import Connection, Engine, Interrupted, Watch
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.schema import Schema

T = TypeVar("T")


class Source:
    """An open database. Its blocking work runs in threads of its own, which end with it.

    `spec` is what it was opened from, without secrets. Use it as `async with await open_source(…) as source`, or
    `await source.close()`.
    """

    def __init__(self, spec: str, engine: Engine, limits: Limits) -> None:
        self.spec = spec
        self.name = engine.name
        self.dialect = engine.dialect
        self.limits = limits
        self._engine = engine
        self._executor = ThreadPoolExecutor(limits.workers, thread_name_prefix="longthread-source")
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._schema: tuple[str, Schema] | None = None
        self._functions: frozenset[str] = frozenset()
        self._jobs: set[_Job[Any]] = set()
        self._closed = False

    def __repr__(self) -> str:
        return f"Source({self.spec!r}, dialect={self.dialect!r})"

    async def __aenter__(self) -> Source:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def fingerprint(self) -> str:
        """A hash of tables, columns, types and keys as they are now. Raises SourceError when the source is gone."""
        return (await self.schema()).fingerprint

    async def schema(self) -> Schema:
        """The tables as they are now: read again only if something changed."""
        return await self.work(self._current_schema)

    @property
    def functions(self) -> frozenset[str]:
        """Names of the functions, defined in the database itself, that only read, as of the last look at its schema."""
        return self._functions

    @property
    def notes(self) -> list[str]:
        """What a reader of the source should know: files that could not be read."""
        return list(self._engine.notes)

    async def work(self, action: Callable[[Connection], T], seconds: float | None = None) -> T:
        """Runs `action` in a thread with a connection, and kills its statement after `seconds` or when the task that
        awaits it is cancelled; either way the thread has ended when this returns.

        Raises SqlTimeout after `seconds` (the source's limit by default), and what `action` raises.
        """
        if self._closed:
            raise _closed(self.spec)
        job = _Job(self, action, self.limits.seconds if seconds is None else seconds)
        future = self._executor.submit(job.run)
        waiting = asyncio.wrap_future(future)
        self._jobs.add(job)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if self._closed and waiting.cancelled():
                raise _closed(self.spec) from None
            if not future.cancel():
                job.stop()
                await _ended(waiting)
            raise
        finally:
            self._jobs.discard(job)

    async def close(self) -> None:
        """Kills what is running, and ends threads and connections. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        for job in self._jobs:
            job.stop()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._drop_idle()
        self._engine.close()

    def _current_schema(self, connection: Connection) -> Schema:
        mark = self._engine.mark(connection)
        known = self._schema
        if known is None or known[0] != mark:
            known = (mark, self._engine.read_schema(connection))
            self._functions = self._engine.functions(connection)
            self._schema = known
        return known[1]

    def borrow(self) -> Connection:
        """A connection for one piece of work, in the calling thread."""
        if self._engine.stale():
            self._drop_idle()
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        return connection or self._engine.connect()

    def give_back(self, connection: Connection) -> None:
        """Keeps the connection for the next piece of work, if it can be made as good as new."""
        try:
            connection.reset()
        except (SourceError, Interrupted):
            connection.close()
            return
        with self._lock:
            self._idle.append(connection)

    def _drop_idle(self) -> None:
        with self._lock:
            dropped, self._idle = self._idle, []
        for connection in dropped:
            connection.close()


class _Job(Generic[T]):
    """One piece of work, and the switch that stops it from another thread."""

    def __init__(self, source: Source, action: Callable[[Connection], T], seconds: float) -> None:
        self._source = source
        self._action = action
        self._seconds = seconds
        self._lock = threading.Lock()
        self._watch: Watch | None = None
        self._stopped = False

    def stop(self) -> None:
        """Kills the statement that runs, or keeps the work from beginning."""
        with self._lock:
            self._stopped = True
            if self._watch is not None:
                self._watch.stop()

    def run(self) -> T:
        """Does the work in this thread. Raises SqlTimeout when its time was up."""
        connection = self._source.borrow()
        watch = Watch(connection.interrupt, self._seconds)
        with self._lock:
            self._watch = watch
            if self._stopped:
                watch.stop()
        try:
            with watch:
                if self._stopped:
                    raise _closed(self._source.spec)
                return self._action(connection)
        except Interrupted:
            if watch.stopped:
                raise _closed(self._source.spec) from None
            raise SqlTimeout(source=self._source.spec, seconds=f"{self._seconds:g}") from None
        finally:
            self._source.give_back(connection)


async def _ended(waiting: asyncio.Future[T]) -> None:
    """Waits until the thread has let go of the work, even when the waiting task is cancelled once more."""
    while not waiting.done():
        try:
            await asyncio.wait({waiting})
        except asyncio.CancelledError:
            continue
    if not waiting.cancelled():
        waiting.exception()  # the killed statement's error, which nobody waits for any more


def _closed(spec: str) -> SourceError:
    return SourceError(source=spec, reason="it was closed.")
