"""An engine whose statements run in a worker, and the workers that wait for the next source over the same data."""

from __future__ import annotations

import contextlib
import dataclasses
import select
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longthread.errors import SourceCrashed, SourceError, SqlTooLarge
from longthread.tools.analysis.engine import Engine, SourceConnection
from longthread.tools.analysis.files.notes import PackedNote, unpack
from longthread.tools.analysis.isolation import wire
from longthread.tools.analysis.isolation.forkserver import FORK_SERVER
from longthread.tools.analysis.isolation.wire import CONNECT, CONTROL, INTERRUPT, TooLarge, WireMessage, unpack_row
from longthread.tools.analysis.isolation.worker import engine_class, find_number
from longthread.tools.analysis.limits import Interrupted, Limits
from longthread.tools.analysis.result import Result, Rows
from longthread.tools.analysis.schema import Schema

if TYPE_CHECKING:
    from longthread.tools.own_files import OwnFiles

_IDLE_SECONDS = 60.0
_END_SECONDS = 1.0
"""Time that a worker has to end by itself."""
_OLDEST_SECONDS = 600.0
"""Age from which a worker serves no other source: what its engine has not given back goes with it."""


@dataclass(frozen=True)
class _Waiting:
    worker: Worker
    key: object
    since: float


class IdleWorkers:
    """At most `most` workers without a connection, for `seconds` each. Thread-safe.

    A worker is handed out once, to a caller with an equal key. The one that has waited longest ends when there are too
    many.
    """

    def __init__(self, most: int, seconds: float = _IDLE_SECONDS) -> None:
        self._most = most
        self._seconds = seconds
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        """The one that has waited longest first."""
        self._timer: threading.Timer | None = None
        self._closed = False

    def take(self, key: object) -> Worker | None:
        """The worker that was kept last under an equal key, and lives."""
        while True:
            with self._lock:
                found = next((each for each in reversed(self._waiting) if each.key == key), None)
                if found is None:
                    return None
                self._waiting.remove(found)
            if found.worker.lives():
                return found.worker
            found.worker.end()

    def keep(self, key: object, worker: Worker) -> None:
        """Keeps a worker, or ends it if none may wait."""
        with self._lock:
            dropped = [_Waiting(worker, key, time.monotonic())]
            if not self._closed:
                self._waiting += dropped
                over = max(0, len(self._waiting) - self._most)
                dropped, self._waiting = self._waiting[:over], self._waiting[over:]
                self._watch()
        _end(dropped)

    def _expire(self) -> None:
        """End the workers that have waited too long."""
        with self._lock:
            until = time.monotonic() - self._seconds
            dropped = [each for each in self._waiting if each.since <= until]
            self._waiting = [each for each in self._waiting if each.since > until]
            self._timer = None
            self._watch()
        _end(dropped)

    def close(self) -> None:
        """End all waiting workers. Workers that are kept later end at once."""
        with self._lock:
            self._closed = True
            dropped, self._waiting = self._waiting, []
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        _end(dropped)

    def _watch(self) -> None:
        """Has `_expire` called when the first has waited long enough."""
        if self._waiting and self._timer is None:
            left = self._waiting[0].since + self._seconds - time.monotonic()
            self._timer = threading.Timer(max(0.0, left), self._expire)
            self._timer.daemon = True
            self._timer.start()


def _end(dropped: list[_Waiting]) -> None:
    for each in dropped:
        each.worker.end()


class Worker:
    """One worker process. It ends with its engine, or when it is killed."""

    def __init__(self, kind: str, path: Path, source: str, limits: Limits) -> None:
        self.source = source
        self.limits = limits
        self._lock = threading.Lock()
        self._connections = 0
        self._open = 0
        self._retired = False
        self._ended = False
        self._spoiled = False
        self._since = time.monotonic()
        self.killed = False
        self.is_open = False
        """Whether it has opened the database: a further connection then takes no time."""
        self.scratch = FORK_SERVER.scratch()
        self._control, self.pid = FORK_SERVER.fork(find_number(kind))
        task = {"kind": kind, "path": str(path), "source": source, "limits": dataclasses.asdict(limits)}
        with contextlib.suppress(OSError):  # it has ended: the first request says so
            wire.send(self._control, task | {"scratch": self.scratch})

    def connect(self) -> tuple[socket.socket, int]:
        """Opens a connection in the worker; returns its socket and its number."""
        ours, theirs = socket.socketpair()
        with self._lock, theirs:
            self._connections += 1
            self._open += 1
            with contextlib.suppress(OSError):  # it has ended: the first request says so
                socket.send_fds(self._control, [CONTROL.pack(CONNECT, self._connections, 0)], [theirs.fileno()])
            return ours, self._connections

    def interrupt(self, connection: int, request: int) -> None:
        """Stops what a request runs. The worker serves its source to the end, and no other."""
        self.spoil()
        with self._lock, contextlib.suppress(OSError):  # it has ended, and the statement with it
            self._control.sendall(CONTROL.pack(INTERRUPT, connection, request))

    def lives(self) -> bool:
        """Whether the process runs and reads the present data. Its control socket is readable once it has ended."""
        try:
            return not (self.killed or self._retired) and not select.select([self._control], [], [], 0)[0]
        except (OSError, ValueError):  # closed
            return False

    def spoil(self) -> None:
        """Note that the process must not serve another source: it is unknown what a stopped statement has left."""
        self._spoiled = True

    def is_fresh(self) -> bool:
        """Whether another source may use the process: it has no connection, and nothing was stopped in it."""
        with self._lock:
            busy = self._open > 0
        return not (busy or self._spoiled) and time.monotonic() - self._since < _OLDEST_SECONDS and self.lives()

    def kill(self) -> None:
        """Kills the process."""
        self.killed = True
        FORK_SERVER.kill(self.pid)

    def left(self) -> None:
        """Notes a closed connection. The last one ends a retired worker."""
        with self._lock:
            self._open -= 1
            last = self._retired and not self._open
        if last:
            self.end()

    def retire(self) -> None:
        """Ends the process once its last connection is closed."""
        with self._lock:
            self._retired = True
            idle = not self._open
        if idle:
            self.end()

    def end(self) -> None:
        """Ends the process, by force after a second, and removes its files."""
        with self._lock:
            ended, self._ended = self._ended, True
        if ended:
            return
        with contextlib.suppress(OSError):  # it has ended, or does not in time
            self._control.shutdown(socket.SHUT_WR)
            self._control.settimeout(_END_SECONDS)
            self._control.recv(1)
        FORK_SERVER.kill(self.pid)
        self._control.close()
        shutil.rmtree(self.scratch, ignore_errors=True)


class WorkerEngine(Engine):
    """An engine whose statements run in one worker for all connections of a source. The wrapped engine (`inner`) looks
    at the file system and reads the catalog in this process.

    Between two sources a worker waits in `idle`, if given. It goes to a source of the same user over the same data, and
    has one source at a time. Each source opens connections of its own.
    """

    def __init__(self, kind: str, path: Path, source: str, limits: Limits) -> None:
        self._inner = engine_class(kind)(path, source, limits)
        self._given = (kind, path, source, limits)
        self._lock = threading.RLock()
        self._worker: Worker | None = None
        self._opening: list[Worker] = []
        """The workers that a first connection waits for, once for each connection that waits."""
        self.dialect = self._inner.dialect
        self.name = self._inner.name
        self._idle: IdleWorkers | None = None
        self._user = ""

    def share(self, idle: IdleWorkers, user: str) -> None:
        """Lets workers wait for the next source of a user."""
        self._idle, self._user = idle, user

    def _key(self) -> tuple[object, ...] | None:
        """What sources must have in common to use the same worker; None if they may not."""
        identity = self._inner.identity()
        return None if identity is None else (self._user, identity, *self._given)

    def _acquire_worker(self) -> Worker:
        key = self._key() if self._idle is not None else None
        found = self._idle.take(key) if self._idle is not None and key is not None else None
        return found or Worker(*self._given)

    def _let_go(self, worker: Worker) -> None:
        key = self._key()
        if self._idle is not None and key is not None and worker.is_fresh():
            self._idle.keep(key, worker)
        else:
            worker.end()

    def connect(self) -> RemoteConnection:
        """Opens a connection, and starts a worker if none runs. Raises SourceError."""
        with self._lock:
            if self._worker is not None and not self._worker.lives():
                self._worker.retire()
                self._worker = None
            if self._worker is None:
                self._worker = self._acquire_worker()
            worker = self._worker
            if not worker.is_open:
                self._opening.append(worker)
        try:
            connection = RemoteConnection(worker, self._lost)
        finally:
            with self._lock:
                if worker in self._opening:
                    self._opening.remove(worker)
        worker.is_open = True
        self.notes, self.table_notes, self.formats = connection.notes, connection.table_notes, connection.formats
        return connection

    def stop_opening(self) -> None:
        """Kills a worker that still opens the database. No statement runs in it yet."""
        with self._lock:
            for worker in self._opening:
                if not worker.is_open:
                    worker.kill()

    def _lost(self, worker: Worker) -> None:
        """Drops a worker that has ended. The next connection starts another."""
        with self._lock:
            if self._worker is worker:
                self._worker = None
        worker.retire()

    def read_schema(self, connection: SourceConnection) -> Schema:
        return self._inner.read_schema(connection)

    def mark(self, connection: SourceConnection) -> str:
        return self._inner.mark(connection)

    def functions(self, connection: SourceConnection) -> frozenset[str]:
        return self._inner.functions(connection)

    def list_functions(self, connection: SourceConnection) -> frozenset[str]:
        return self._inner.list_functions(connection)

    def views(self, connection: SourceConnection) -> dict[str, str]:
        return self._inner.views(connection)

    def refuse(self, own: OwnFiles) -> None:
        self._inner.refuse(own)

    def stale(self) -> bool:
        """Whether the data moved. Running statements keep the old worker; the next connection starts another."""
        if not self._inner.stale():
            return False
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.retire()
        return True

    def close(self) -> None:
        """Ends the worker, or lets it wait for the next source."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            self._let_go(worker)
        self._inner.close()


class RemoteConnection(SourceConnection):
    """A connection in a worker."""

    def __init__(self, worker: Worker, lost: Callable[[Worker], None]) -> None:
        self._worker = worker
        self._lost = lost
        self._request = 0
        self._waiting = False
        self._abandoned = False
        self._closed = False
        self._socket, self._number = worker.connect()
        with contextlib.ExitStack() as undoing:
            undoing.callback(self.close)
            reply = self._answer()
            self.notes = [unpack(note) for note in reply["notes"]]
            on_tables: dict[str, list[PackedNote]] = reply["table_notes"]
            self.table_notes = {label: [unpack(note) for note in notes] for label, notes in on_tables.items()}
            self.formats: dict[str, dict[str, dict[str, Any]]] = reply["formats"]
            undoing.pop_all()

    def execute(self, sql: str) -> Rows:
        answer = self._ask(do="execute", sql=sql)
        return Rows(answer["columns"], map(unpack_row, answer["rows"]))

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> Rows:
        return Rows(self._ask(do="query", sql=sql, parameters=list(parameters))["columns"], self._fetch_rows())

    def fetch(self, sql: str, limits: Limits, *, keep: int, cell: int, parameters: Sequence[Any] = ()) -> Result:
        bounds = {"limits": dataclasses.asdict(limits), "keep": keep, "cell": cell}
        answer = self._ask(do="fetch", sql=sql, parameters=list(parameters), **bounds)
        return Result(**answer["result"])

    def _fetch_rows(self) -> Iterator[Sequence[Any]]:
        done = False
        try:
            while not done:
                answer = self._ask(do="more")
                done = answer["done"]
                yield from map(unpack_row, answer["rows"])
        finally:
            if not done:
                with contextlib.suppress(SourceError, Interrupted):  # it has ended as well
                    self._ask(do="end")

    def interrupt(self) -> None:
        self._worker.interrupt(self._number, self._request)

    def lives(self) -> bool:
        return not self._closed and self._worker.lives()

    def abandon(self) -> bool:
        """Kills the worker if a request waits for it. Other statements of the source end with it."""
        if self._waiting:
            self._abandoned = True
            self._worker.kill()
        return self._waiting

    def reset(self) -> None:
        self._ask(do="reset")

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._socket.close()
            self._worker.left()

    def _ask(self, **message: Any) -> WireMessage:
        self._request += 1
        if not self._closed:
            with contextlib.suppress(OSError):  # gone: there is no answer either
                wire.send(self._socket, message | {"request": self._request})
        return self._answer()

    def _answer(self) -> WireMessage:
        self._waiting = True
        try:
            answer = None if self._closed else wire.receive(self._socket)
        except (OSError, TooLarge):
            answer = None
        finally:
            self._waiting = False
        if answer is None:
            raise self._gone()
        if (error := wire.error_of(answer)) is not None:
            if isinstance(error, SqlTooLarge):  # it has been at the limit of its memory
                self._worker.spoil()
            raise error
        return answer

    def _gone(self) -> Exception:
        """The error for a worker that has ended: it was killed, or it ended by itself."""
        self._lost(self._worker)
        if self._abandoned:
            return Interrupted()
        if self._worker.killed:
            return SourceCrashed(reason="Another query of this source had to be stopped by force.")
        return SourceCrashed(reason=f"It may have needed more than {self._worker.limits.memory_mb} MB of memory.")
