"""What every database engine offers to a source: hardened connections, and its schema."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from longthread.tools.analysis.schema import Schema

_AGAIN = 0.1
"""Seconds between two interrupts: one that falls between two statements stops nothing, so it is repeated."""

GRACE = 2.0
"""Seconds after which nobody waits any more for work that does not heed its interrupts."""


class Interrupted(Exception):
    """The engine stopped a statement because it was told to. Who told it knows why."""


class Rows:
    """The result of one statement: column names and an iterator over rows, read as they are asked for."""

    def __init__(self, columns: Sequence[str], rows: Iterator[Sequence[Any]]) -> None:
        self.columns = list(columns)
        self._rows = rows

    def __iter__(self) -> Iterator[Sequence[Any]]:
        return self._rows

    def first(self) -> Sequence[Any] | None:
        """The first row, or None; the rest is dropped."""
        row = next(self._rows, None)
        self.close()
        return row

    def close(self) -> None:
        """Ends the statement."""
        close = getattr(self._rows, "close", None)
        if close is not None:
            close()


class Connection(ABC):
    """One read-only connection, used by one thread at a time; `interrupt` may come from any other."""

    @abstractmethod
    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Rows:
        """Runs a statement of ours, whose result is small: catalog queries and statistics."""

    @abstractmethod
    def query(self, sql: str) -> Rows:
        """Runs a statement that somebody else wrote and the guard let through.

        Raises SqlFailed, SqlRefused, SourceLocked, Interrupted.
        """

    @abstractmethod
    def interrupt(self) -> None:
        """Stops the statement that is running, if one is. Never raises."""

    @abstractmethod
    def reset(self) -> None:
        """Makes the connection as good as new: no transaction, no state of the last user."""

    @abstractmethod
    def close(self) -> None:
        """Ends the connection."""


class Engine(ABC):
    """One database. `connect` may be called from several threads."""

    dialect: str
    name: str
    notes: Sequence[str] = ()
    """What could not be read, for people to know."""

    @abstractmethod
    def connect(self) -> Connection:
        """A new hardened connection. Raises SourceError."""

    @abstractmethod
    def read_schema(self, connection: Connection) -> Schema:
        """All tables with their columns, keys and comments."""

    @abstractmethod
    def mark(self, connection: Connection) -> str:
        """A cheap text that differs whenever the schema may have changed."""

    def stale(self) -> bool:
        """Whether the data moved, so that open connections must be replaced."""
        return False

    def functions(self, connection: Connection) -> frozenset[str]:
        """Names of functions, defined in this database, that only read."""
        del connection
        return frozenset()

    @abstractmethod
    def close(self) -> None:
        """Frees what the engine holds."""


class Watch:
    """Interrupts a connection when time is up or when told to stop, and repeats it until the work has ended.

    `overdue` is called once, in the watch's thread, when the work goes on for `GRACE` seconds in spite of that.
    """

    def __init__(
        self, interrupt: Callable[[], None], seconds: float, overdue: Callable[[], None] | None = None
    ) -> None:
        self._interrupt = interrupt
        self._seconds = seconds
        self._overdue = overdue
        self._wake = threading.Event()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._guard, name="longthread-watch", daemon=True)
        self.stopped = False
        self.expired = False

    def stop(self) -> None:
        """Interrupts now. May be called from any thread, before the work has begun too."""
        self.stopped = True
        self._wake.set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._wake.set()
        self._thread.join()

    def _guard(self) -> None:
        self._wake.wait(self._seconds)
        until = time.monotonic() + GRACE
        while not self._done.is_set():
            self.expired = not self.stopped
            self._interrupt()
            if self._done.wait(_AGAIN) or self._overdue is None or time.monotonic() < until:
                continue
            self._overdue()
            self._overdue = None
