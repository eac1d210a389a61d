"""A source: a database that is queried and never changed."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from typing import Any, Generic, TypeVar

from longthread.errors import (
    LongthreadError,
    SourceError,
    SourceFailed,
    SourceTimeout,
    SourceUnreachable,
    SqlRefused,
    SqlTimeout,
)
from longthread.loop_bridge import to_the_end
from longthread.tools.analysis.engine import Engine, FormatsInFiles, SourceConnection
from longthread.tools.analysis.guard import Guard, Judged
from longthread.tools.analysis.limits import GRACE, Interrupted, Limits, Watch
from longthread.tools.analysis.missing_names import apply_mends, mend_date_parts
from longthread.tools.analysis.policy_rewrite import rewrite_statement
from longthread.tools.analysis.resolver import Resolver
from longthread.tools.analysis.schema import Schema
from longthread.tools.analysis.schema_values import READ_SECONDS, SourceValues, read_values
from longthread.tools.analysis.user_policy import Restricted, UserPolicy, restrict

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Source:
    """An open database. Its blocking work has a thread a job, `workers` at a time: an idle source has none. `spec` is
    what it was opened from, without secrets. Use it as `async with await open_source(…) as source`, or
    `await source.close()`."""

    def __init__(
        self,
        spec: str,
        engine: Engine,
        limits: Limits,
        policy: UserPolicy | None = None,
        hidden: tuple[str, ...] = (),
    ) -> None:
        self.spec = spec
        self.label = without(spec, hidden)
        """What models and people see of `spec`: without the folders `hidden`, which no error says either."""
        self.name = engine.name
        self.dialect = engine.dialect
        self.limits = limits
        self._engine = engine
        self._slots = asyncio.Semaphore(limits.workers)
        self._lock = threading.Lock()
        self._idle: list[SourceConnection] = []
        self._schema: tuple[str, Schema] | None = None
        self._values: tuple[str, SourceValues] | None = None
        self.functions: frozenset[str] = frozenset()
        """Names of the database's own functions that only read, as of the last look at its schema."""
        self._defined: frozenset[str] = frozenset()
        self._policy = policy
        self._hidden = hidden
        self._restricted: Restricted | None = None
        self._jobs: set[_Job[Any]] = set()
        self._left: set[_Job[Any]] = set()
        """Abandoned work that has not ended yet."""
        self._closed = False

    def __repr__(self) -> str:
        return f"Source({self.spec!r}, dialect={self.dialect!r})"

    async def __aenter__(self) -> Source:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def fingerprint(self) -> str:
        """The present schema's hash. Raises SourceError."""
        return (await self.schema()).fingerprint

    async def schema(self) -> Schema:
        """The present schema; read again only after a change."""
        return await self.work(self._current_schema)

    async def values(self, schema: Schema) -> SourceValues:
        """What the columns of the present `schema` hold, as the first look at it found it: a prompt that shows it stays
        the same. Raises SourceError."""
        if self._values is None or self._values[0] != schema.fingerprint:
            read = await self.work(lambda connection: read_values(connection, schema, self.dialect), READ_SECONDS)
            self._values = schema.fingerprint, read
        return self._values[1]

    @property
    def notes(self) -> list[str]:
        """Notes for people: files that could not be read, and rows that were read into a cell. None that names what a
        policy hides."""
        return [note for note in self._engine.notes if not self.hides(note)]

    def notes_on(self, label: str) -> list[str]:
        """Guesses about a table. None under a policy: they could reveal hidden values."""
        return [] if self._policy is not None else list(self._engine.table_notes.get(label, ()))

    @property
    def formats(self) -> FormatsInFiles:
        """How files write numbers, by table and column. None under a policy, as of notes."""
        return self._engine.formats if self._policy is None else {}

    def notes_about(self, labels: Iterable[str]) -> list[str]:
        """Return notes on skipped files, then on these tables, each after the table's name."""
        on_tables = (f"{label}: {note}" for label in labels for note in self.notes_on(label))
        return list(dict.fromkeys([*self.notes, *on_tables]))

    async def work(self, action: Callable[[SourceConnection], T], seconds: float | None = None) -> T:
        """Runs `action` in a thread with a connection. Kills its statement after `seconds` (by default the source's
        limit), or when the awaiting task is cancelled. A new connection has `open_seconds` to open. The thread has
        ended when this returns, unless a call of the engine ignores interrupts: after `GRACE` seconds thread and
        connection are abandoned.

        Raises SourceTimeout, SqlTimeout, and what `action` raises.
        """
        async with self._slots:
            if self._closed:
                raise _make_closed_error(self.label)
            job = _Job(self, action, self.limits.seconds if seconds is None else seconds)
            waiting = asyncio.wrap_future(job.outcome)
            job.start()
            try:
                return await asyncio.shield(waiting)
            except asyncio.CancelledError:
                job.stop()
                await _wait_for_end(waiting)
                raise

    async def close(self) -> None:
        """Kills running statements, and ends threads and connections, even if the awaiting task is cancelled."""
        if self._closed:
            return
        self._closed = True
        with self._lock:
            jobs = list(self._jobs)
        for job in jobs:
            job.stop()
        await to_the_end(asyncio.to_thread(self._close, jobs))

    def _close(self, jobs: list[_Job[Any]]) -> None:
        wait([job.outcome for job in jobs], timeout=2 * GRACE)
        with self._lock:
            ended = not self._left
        if ended:
            for job in jobs:
                job.join()
        self.drop_idle()
        if ended:
            self._engine.close()

    def begun(self, job: _Job[Any]) -> None:
        """Notes work whose thread `close` waits for."""
        with self._lock:
            self._jobs.add(job)

    def leave(self, job: _Job[Any]) -> None:
        """Abandon work: no task waits for its thread any more."""
        with self._lock:
            self._left.add(job)

    def finish_job(self, job: _Job[Any]) -> None:
        """Notes the end of work. The last abandoned work of a closed source frees the engine."""
        with self._lock:
            self._jobs.discard(job)
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
            self._defined = self._engine.list_functions(connection)
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
        return restrict(
            schema, policy, dialect, views, lambda sql, seen: rewrite_statement(sql, seen, dialect), self._defined
        )

    def judge(self, sql: str, schema: Schema) -> Judged:
        """Checks that a statement only reads. Blocking: parsing a long one takes a while. Raises SqlRefused."""
        return Guard(self.dialect).judge(sql, functions=self.functions, tables=schema.tables, defined=self._defined)

    def prepare(self, sql: str, schema: Schema, run: str | None = None) -> tuple[str, str]:
        """Checks a statement and its names. Returns it, and what is run for it: `run`, the same statement with places
        for its values, if given. Blocking. Raises SqlRefused, TableNotFound, ColumnNotFound."""
        judged = self.judge(sql, schema)
        Resolver(schema, self.dialect, self.functions).check(judged.tree)
        return judged.text, self.restrict_statement(judged.text if run is None else run)

    def prepare_mended(self, sql: str, schema: Schema) -> tuple[str, str, list[str]]:
        """Prepare a statement of a model, with what is certainly wrong mended: qualifiers, keys in joins, and other
        engines' parts of dates. The keys that the prompt shows count, declared or not. Return what `prepare` returns,
        and a note for each mending. Blocking. Raises what `prepare` raises."""
        judged = self.judge(sql, schema)
        if judged.explains:  # the places of its names are those of another text
            return *self.prepare(sql, schema), []
        linked = schema
        if self._values is not None and self._values[0] == schema.fingerprint:
            linked = schema.with_keys(self._values[1].links)
        mends = Resolver(linked, self.dialect, self.functions).mends(judged.tree, keys=self._policy is None)
        if not self.functions & {"year", "month", "day"}:
            mends += mend_date_parts(judged.tree, judged.text, schema, self.dialect)
        if not mends:
            return judged.text, self.restrict_statement(judged.text), []
        text, run = self.prepare(apply_mends(judged.text, mends), schema)
        return text, run, list(dict.fromkeys(mend.note for mend in mends))

    def restrict_statement(self, sql: str) -> str:
        """A judged statement, rewritten by the policy for the user. Raises SqlRefused, TableNotFound."""
        if self._policy is None:
            return sql
        if self._restricted is None:
            raise SqlRefused(reason="its schema was not read yet, so that nothing is known of what may be read.")
        return rewrite_statement(sql, self._restricted, self.dialect)

    def hides(self, text: str) -> bool:
        """Whether a text names a hidden table or column, or could name one, as the schema is not read yet."""
        if self._policy is None:
            return False
        return self._restricted is None or self._restricted.is_named_in(text)

    def hide_folders(self, error: BaseException) -> BaseException:
        """The error, without the hidden folders."""
        return hide_folders(error, self._hidden)

    def idle(self) -> SourceConnection | None:
        """A connection of the pool for the calling thread, if one is left."""
        if self._engine.stale():
            self.drop_idle()
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None or connection.lives():
                return connection
            connection.close()

    def connect(self) -> SourceConnection:
        """A new connection for the calling thread. Raises SourceError."""
        return self._engine.connect()

    def stop_opening(self) -> None:
        """Stops what opens the database, where the engine can. Thread-safe."""
        self._engine.stop_opening()

    def give_back(self, connection: SourceConnection) -> None:
        """Returns a connection to the pool, if it can be reset."""
        try:
            connection.reset()
        except (SourceError, Interrupted):
            connection.close()
            return
        with self._lock:
            is_open = not self._closed
            if is_open:
                self._idle.append(connection)
        if not is_open:
            connection.close()

    def drop_idle(self) -> None:
        """Closes idle connections."""
        with self._lock:
            dropped, self._idle = self._idle, []
        for connection in dropped:
            connection.close()


class _Job(Generic[T]):
    """One piece of work, which another thread can stop."""

    def __init__(self, source: Source, action: Callable[[SourceConnection], T], seconds: float) -> None:
        self._source = source
        self._action = action
        self._seconds = seconds
        self._lock = threading.Lock()
        self._watch: Watch | None = None
        self._stopped = False
        self.outcome: Future[T] = Future()
        """The result of the work, or that it was abandoned."""
        self._thread = threading.Thread(target=self._work, name="longthread-source")

    def start(self) -> None:
        """Does the work in a thread of its own."""
        self._source.begun(self)
        try:
            self._thread.start()
        except RuntimeError:  # the system has no more threads
            self._source.finish_job(self)
            raise

    def join(self) -> None:
        """Waits for the end of the thread."""
        self._thread.join()

    def stop(self) -> None:
        """Kills the running statement or the opening, or cancels the work before it starts."""
        with self._lock:
            self._stopped = True
            if self._watch is not None:
                self._watch.stop()

    def _work(self) -> None:
        try:
            result = self._run()
        except BaseException as error:  # noqa: BLE001 - whatever ended this thread, the task gets it
            self._settle(error)
        else:
            self._settle(None, result)
        finally:
            self._source.finish_job(self)

    def _run(self) -> T:
        """Runs the action. A session that the server has ended is replaced once, as all work only reads."""
        until = time.monotonic() + self._seconds
        connection = self._acquire_connection()
        try:
            return self._done_with(connection, self._seconds)
        except SourceUnreachable:
            left = until - time.monotonic()
            if self._stopped or left <= 0:
                raise
        self._source.drop_idle()  # the server may have ended those too
        return self._done_with(self._acquire_connection(), left)

    def _acquire_connection(self) -> SourceConnection:
        """A connection; a new one must open within the source's limit. A file may take any time to open."""
        source = self._source
        if (waiting := source.idle()) is not None:
            return waiting
        watch = self._set_watch(Watch(source.stop_opening, source.limits.open_seconds, self._leave_opening))
        try:
            with watch:
                connection = source.connect()
        except (SourceError, Interrupted):
            if watch.stopped or watch.expired:
                raise self._not_open() from None
            raise
        if self.outcome.done():  # abandoned: no task waits for the work
            source.give_back(connection)
            raise self._not_open()
        return connection

    def _set_watch(self, watch: Watch) -> Watch:
        """Has `stop` reach what the watch guards."""
        with self._lock:
            self._watch = watch
            if self._stopped:
                watch.stop()
        return watch

    def _done_with(self, connection: SourceConnection, seconds: float) -> T:
        watch = self._set_watch(Watch(connection.interrupt, seconds, lambda: self._give_up(connection)))
        try:
            with watch:
                if self._stopped:
                    raise _make_closed_error(self._source.label)
                return self._action(connection)
        except Interrupted:
            raise self._reason() from None
        finally:
            self._source.give_back(connection)

    def _give_up(self, connection: SourceConnection) -> None:
        if not connection.abandon():  # else the work ends now and settles itself
            self._leave(self._reason())

    def _leave_opening(self) -> None:
        self._leave(self._not_open())

    def _leave(self, error: SourceError) -> None:
        if self._settle(error, leaving=True):
            _log.warning("A call inside %s heeds no interrupt; it is left to end by itself.", self._source.name)

    def _settle(self, error: BaseException | None, *result: T, leaving: bool = False) -> bool:
        """Sets the outcome, once."""
        if isinstance(error, StopIteration):  # no task can end with it: its end would go unnoticed
            error = RuntimeError(f"The work raised {error!r}.")
        with self._lock:
            first = not self.outcome.done()
            if first and leaving:
                self._source.leave(self)
            if first and error is not None:
                self.outcome.set_exception(self._source.hide_folders(error))
            elif first:
                self.outcome.set_result(result[0])
        return first

    def _reason(self) -> SourceError:
        if self._stopped:
            return _make_closed_error(self._source.label)
        return SqlTimeout(seconds=f"{self._seconds:g}")

    def _not_open(self) -> SourceError:
        if self._stopped:
            return _make_closed_error(self._source.label)
        return SourceTimeout(source=self._source.label, seconds=f"{self._source.limits.open_seconds:g}")


def without(text: str, hidden: tuple[str, ...]) -> str:
    """A text without folders."""
    for each in hidden:
        text = text.replace(each, "")
    return text


def hide_folders(error: BaseException, hidden: tuple[str, ...]) -> BaseException:
    """An error that does not say the folders `hidden`: the same one, if it does not."""
    if not isinstance(error, LongthreadError) or not any(each in str(error) for each in hidden):
        return error
    details = {name: without(str(each), hidden) for name, each in error.details.items()}
    return type(error)(**details)


async def _wait_for_end(waiting: asyncio.Future[T]) -> None:
    """Waits for the end of the thread, even if the task is cancelled again."""
    while not waiting.done():
        try:
            await asyncio.wait({waiting})
        except asyncio.CancelledError:
            continue
    if not waiting.cancelled():
        waiting.exception()  # the killed statement's error: retrieved, not raised


def _make_closed_error(spec: str) -> SourceError:
    return SourceFailed(source=spec, reason="it was closed.")
