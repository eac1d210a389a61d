"""How much a source may be asked for at once, and a watch that stops work which takes too long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

_AGAIN = 0.1
"""Seconds between interrupts: one between two statements has no effect, so it is repeated."""

GRACE = 2.0
"""Seconds after which work that ignores interrupts is abandoned."""


@dataclass(frozen=True)
class Limits:
    """The bounds of one source. Every cut that they make is said in the observation ("N of M")."""

    rows: int = 100
    """Rows of a result that are shown."""
    sample_rows: int = 20
    """Rows that `sample_rows` shows at most."""
    bytes: int = 64_000
    """Bytes of JSON that the rows of one observation may take."""
    cell_characters: int = 2_000
    """Characters of one cell that are shown."""
    sample_cell_characters: int = 200
    """Characters of one cell in a sample or in a column's values."""
    counted_rows: int = 100_000
    """Rows that are read, without being kept, to say how many there are."""
    count_seconds: float = 3.0
    """Seconds that counting may take once the rows to show are there."""
    seconds: float = 30.0
    """Seconds after which a query is killed."""
    open_seconds: float = 120.0
    """Seconds after which opening is stopped: reading a file, or connecting to a server."""
    statistics_seconds: float = 3.0
    """Seconds that the statistics of one table, or the row counts of one listing, may take."""
    statistics_cells: int = 2_000_000
    """Cells that the statistics of one table may read; more, and they come from a sample."""
    listed_tables: int = 500
    """Tables that one listing names."""
    many_tables: int = 100
    """Tables above which a listing without a pattern names only the tables that the question is likely about."""
    likely_tables: int = 20
    """How many these are."""
    listed_columns: int = 400
    """Columns up to which a listing names the columns too."""
    listed_notes: int = 40
    """Notes on tables that one listing has; a description has those of its table."""
    described_columns: int = 300
    """Columns of one table that a description shows."""
    value_bytes: int = 64_000_000
    """Bytes of the largest stored value that can be read (a cell of 10 million characters is legitimate)."""
    built_bytes: int = 500_000
    """Bytes of the largest value that a SQLite query may read or make when it makes values (`||`, replace, …): a single
    call over larger ones can take minutes, and cannot be stopped."""
    memory_mb: int = 1_024
    """Memory of an embedded engine. DuckDB spills to disk above it; a process of its own ends well above it."""
    spill_mb: int = 2_048
    """Disk that an embedded analytical engine may use for that."""
    loaded_file_mb: int = 64
    """Size up to which a data file is read into memory when the source is opened; a bigger one is read in place."""
    encoding: str = ""
    """The encoding of text files; empty: each file's is found out."""
    lock_seconds: float = 2.0
    """Seconds to wait for another program's lock."""
    connect_seconds: int = 10
    """Seconds to wait for a database server to answer."""
    isolated: bool = True
    """Whether an embedded engine runs in a process of its own, which can be killed and has a memory limit."""
    workers: int = 4
    """Queries of one source that run at the same time."""


class Interrupted(Exception):
    """The engine stopped a statement on request."""


class Watch:
    """Interrupts a connection at a timeout or on `stop`, repeatedly, until the work has ended. After `GRACE` seconds
    more it calls `overdue` once, in its own thread."""

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
        """Interrupts now. Thread-safe, also before the work has begun."""
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
