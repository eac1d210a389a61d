"""A source: a database that may be asked, and never changed."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Generic, TypeVar

from longthread.errors import SourceError, SourceFailed, SourceUnreachable, SqlRefused, SqlTimeout
from longthread.store.completion import to_the_end
from longthread.tools.analysis.engine import Engine, SourceConnection
from longthread.tools.analysis.guard import Guard, Judged
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.policy.restricted_schema import Restricted, restrict
from longthread.tools.analysis.policy.rewrite import rewritten
from longthread.tools.analysis.policy.user_policy import UserPolicy
from longthread.tools.analysis.resolver import Resolver
from longthread.tools.analysis.schema import Schema
from longthread.tools.analysis.watch import GRACE, Interrupted, Watch

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Source:
    """An open database. Its blocking work runs in threads of its own, which end with it.

    `spec` is what it was opened from, without secrets. Use it as `async with await open_source(…) as source`, or
    `await source.close()`.
    """

    def __init__(self, spec: str, engine: Engine, limits: Limits, policy: UserPolicy | None = None) -> None:
        self.spec = spec
        self.name = engine.name
        self.dialect = engine.dialect
        self.limits = limits
        self._engine = engine
        self._executors = [_executor(limits.workers)]
        self._lock = threading.Lock()
        self._idle: list[SourceConnection] = []
        self._schema: tuple[str, Schema] | None = None
        self.functions: frozenset[str] = frozenset()
        """Names of the database's own functions that only read, as of the last look at its schema."""
        self._defined: frozenset[str] = frozenset()
        self._policy = policy
        self._restricted: Restricted | None = None
        self._jobs: set[_Job[Any]] = set()
        self._left: set[_Job[Any]] = set()
        """Work that nobody waits for any more, and that has not ended yet."""
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
    def notes(self) -> list[str]:
        """What a reader of the source should know: files that could not be read."""
        return list(self._engine.notes)

    def notes_on(self, label: str) -> list[str]:
        """What was guessed of a table when it was read. Nothing where a policy holds: it may tell of hidden values."""
        return [] if self._policy is not None else list(self._engine.table_notes.get(label, ()))

    async def work(self, action: Callable[[SourceConnection], T], seconds: float | None = None) -> T:
        """Runs `action` in a thread with a connection, and kills its statement after `seconds` or when the task that
        awaits it is cancelled. The thread has then ended when this returns, unless it is inside of one call of the
        engine that heeds no interrupt: after `GRACE` seconds it is left to end by itself, with its connection.

        Raises SqlTimeout after `seconds` (the source's limit by default), and what `action` raises.
        """
        if self._closed:
            raise _closed(self.spec)
        job = _Job(self, action, self.limits.seconds if seconds is None else seconds)
        future = self._executors[-1].submit(job.run)
        future.add_done_callback(lambda done: done.cancelled() and job.outcome.cancel())
        waiting = asyncio.wrap_future(job.outcome)
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
        """Kills what is running, and ends threads and connections, also when the task that awaits it is cancelled. A
        second call does nothing."""
        if self._closed:
            return
        self._closed = True
        jobs = list(self._jobs)
        for job in jobs:
            job.stop()
        await to_the_end(asyncio.to_thread(self._close, jobs))

    def _close(self, jobs: list[_Job[Any]]) -> None:
        for executor in self._executors:
            executor.shutdown(wait=False, cancel_futures=True)
        wait([job.outcome for job in jobs], timeout=2 * GRACE)
        with self._lock:
            ended = not self._left
        if ended:
            for executor in self._executors:
                executor.shutdown()
            self._engine.close()
        self.drop_idle()

    def leave(self, job: _Job[Any]) -> None:
        """Waits no longer for a piece of work, and gives its place to the next ones."""
        with self._lock:
            self._left.add(job)
            self._executors[-1].shutdown(wait=False)  # what waits in it is still done
            self._executors.append(_executor(self.limits.workers))

    def arrived(self, job: _Job[Any]) -> None:
        """A piece of work has ended; if it was the last that kept a closed source from being freed, that is done."""
        with self._lock:
            late = job in self._left
            self._left.discard(job)
            last = late and self._closed and not self._left
        if last:
            self._engine.close()

    def _current_schema(self, connection: SourceConnection) -> Schema:
        mark = self._engine.mark(connection)
        known = self._schema
        if known is None or known[0] != mark:
            schema = self._engine.read_schema(connection)
            self._defined = self._engine.defined(connection)
            if self._policy is None:
                self.functions = self._engine.functions(connection)
            else:  # the database's own functions may read anything
                restricted = self._restrict(schema, self._policy, self._engine.views(connection))
                self._restricted, schema = restricted, restricted.schema
            known = (mark, schema)
            self._schema = known
        return known[1]

    def _restrict(self, schema: Schema, policy: UserPolicy, views: dict[str, str]) -> Restricted:
        dialect = self.dialect
        return restrict(schema, policy, dialect, views, lambda sql, seen: rewritten(sql, seen, dialect), self._defined)

    def judge(self, sql: str, schema: Schema) -> Judged:
        """Checks that a statement only reads. Blocking: parsing a long one takes a while. Raises SqlRefused."""
        return Guard(self.dialect).judge(sql, functions=self.functions, tables=schema.tables, defined=self._defined)

    def prepare(self, sql: str, schema: Schema, run: str | None = None) -> tuple[str, str]:
        """Checks a statement and its names. Returns it, and what is run for it: `run`, the same statement with places
        for its values, if given. Blocking. Raises SqlRefused, TableNotFound, ColumnNotFound."""
        judged = self.judge(sql, schema)
        Resolver(schema, self.dialect, self.functions).check(judged.tree)
        return judged.text, self.bounded(judged.text if run is None else run)

    def bounded(self, sql: str) -> str:
        """A judged statement, rewritten by the policy so that it reads no more than the user may. Raises SqlRefused,
        TableNotFound."""
        if self._policy is None:
            return sql
        if self._restricted is None:
            raise SqlRefused(reason="its schema was not read yet, so that nothing is known of what may be read.")
        return rewritten(sql, self._restricted, self.dialect)

    def hides(self, text: str) -> bool:
        """Whether a text names a table or a column that the user of this source may not see; where it is not known what
        that is, it may."""
        if self._policy is None:
            return False
        return self._restricted is None or self._restricted.is_named_in(text)

    def borrow(self) -> SourceConnection:
        """A connection for one piece of work, in the calling thread."""
        if self._engine.stale():
            self.drop_idle()
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None or connection.lives():
                return connection or self._engine.connect()
            connection.close()

    def give_back(self, connection: SourceConnection) -> None:
        """Keeps the connection for the next piece of work, if it can be made as good as new."""
        try:
            connection.reset()
        except (SourceError, Interrupted):
            connection.close()
            return
        with self._lock:
            kept = not self._closed
            if kept:
                self._idle.append(connection)
        if not kept:
            connection.close()

    def drop_idle(self) -> None:
        """Ends the connections that nobody uses."""
        with self._lock:
            dropped, self._idle = self._idle, []
        for connection in dropped:
            connection.close()


class _Job(Generic[T]):
    """One piece of work, and the switch that stops it from another thread."""

    def __init__(self, source: Source, action: Callable[[SourceConnection], T], seconds: float) -> None:
        self._source = source
        self._action = action
        self._seconds = seconds
        self._lock = threading.Lock()
        self._watch: Watch | None = None
        self._stopped = False
        self.outcome: Future[T] = Future()
        """What the work came to, or that it is waited for no longer."""

    def stop(self) -> None:
        """Kills the statement that runs, or keeps the work from beginning."""
        with self._lock:
            self._stopped = True
            if self._watch is not None:
                self._watch.stop()

    def run(self) -> None:
        """Does the work in this thread; its outcome is SqlTimeout when its time was up."""
        try:
            result = self._run()
        except BaseException as error:  # the task that waits for the outcome is told, whatever ended this thread
            self._settle(error)
            raise
        else:
            self._settle(None, result)
        finally:
            self._source.arrived(self)

    def _run(self) -> T:
        """What the action gives. A session that the server has ended is replaced once: all work only reads."""
        until = time.monotonic() + self._seconds
        connection = self._source.borrow()
        try:
            return self._done_with(connection, self._seconds)
        except SourceUnreachable:
            left = until - time.monotonic()
            if self._stopped or left <= 0:
                raise
        self._source.drop_idle()  # the server may have ended those too
        return self._done_with(self._source.borrow(), left)

    def _done_with(self, connection: SourceConnection, seconds: float) -> T:
        watch = Watch(connection.interrupt, seconds, lambda: self._give_up(connection))
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
            raise self._reason() from None
        finally:
            self._source.give_back(connection)

    def _give_up(self, connection: SourceConnection) -> None:
        if connection.abandon():  # the work ends now, and says so itself
            return
        if self._settle(self._reason(), leaving=True):
            _log.warning("A call inside %s heeds no interrupt; it is left to end by itself.", self._source.name)

    def _settle(self, error: BaseException | None, *result: T, leaving: bool = False) -> bool:
        """Says what the work came to, once."""
        with self._lock:
            first = not self.outcome.done()
            if first and leaving:
                self._source.leave(self)
            if first and error is not None:
                self.outcome.set_exception(error)
            elif first:
                self.outcome.set_result(result[0])
        return first

    def _reason(self) -> SourceError:
        if self._stopped:
            return _closed(self._source.spec)
        return SqlTimeout(seconds=f"{self._seconds:g}")


async def _ended(waiting: asyncio.Future[T]) -> None:
    """Waits until the thread has let go of the work, even when the waiting task is cancelled once more."""
    while not waiting.done():
        try:
            await asyncio.wait({waiting})
        except asyncio.CancelledError:
            continue
    if not waiting.cancelled():
        waiting.exception()  # the killed statement's error, which nobody waits for any more


def _executor(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="longthread-source")


def _closed(spec: str) -> SourceError:
    return SourceFailed(source=spec, reason="it was closed.")
