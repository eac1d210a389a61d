"""A worker: the process that runs the statements of one source."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from longthread.errors import SqlTooLarge
from longthread.tools.analysis.dialects.dialect import find_dialect, load_dialects
from longthread.tools.analysis.engine import Engine, SourceConnection
from longthread.tools.analysis.files.notes import pack
from longthread.tools.analysis.isolation import memory
from longthread.tools.analysis.isolation.wire import (
    CONNECT,
    CONTROL,
    TooLarge,
    WireMessage,
    error_message,
    pack_row,
    receive,
    send,
)
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.result import Rows, plain

DATA_FILES = "files"
"""The kind of the engine that reads data files; the other kinds are names of dialects."""
_BATCH_ROWS = 500
_BATCH_CHARACTERS = 1_000_000
"""A batch ends with the row that reaches either limit."""
_CATALOG_ROWS = 1_000_000
"""Rows of a catalog query: ten thousand tables have fewer columns."""


def engine_class(kind: str) -> Callable[[Path, str, Limits], Engine]:
    """The engine of a kind. It is loaded here and not above: one does not need the driver of another."""
    if kind != DATA_FILES:
        return find_dialect(kind).load_file_engine()
    from longthread.tools.analysis.engines.files import FilesEngine

    return FilesEngine


def find_number(kind: str) -> int:
    """Return the number of the driver of a kind."""
    kinds = number_kinds()
    return kinds.index(kind) if kind in kinds else len(kinds)


def number_kinds() -> list[str]:
    """Return the core's kinds that run in a worker; the number of an engine's driver is its place."""
    return [DATA_FILES, *(each.name for each in load_dialects() if each.is_file)]


def load(driver: int) -> None:
    """Load the driver of a number. That of a plugin has none: the worker itself imports the plugin."""
    kinds = number_kinds()
    if driver < len(kinds):
        engine_class(kinds[driver])


def serve(control: socket.socket) -> None:
    """Serves connections until the other side closes the socket, and ends the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    task = receive(control)
    if task is None:
        return
    limits = Limits(**task["limits"])
    tempfile.tempdir = task["scratch"]
    memory.limit_memory(limits.memory_mb)
    engine = engine_class(task["kind"])(Path(task["path"]), task["source"], limits)
    _obey(control, engine)
    engine.close()
    os._exit(0)  # whatever a thread is inside of


def _obey(control: socket.socket, engine: Engine) -> None:
    served: dict[int, ServedConnection] = {}
    while True:
        data, given, _, _ = socket.recv_fds(control, CONTROL.size, 1)
        if len(data) != CONTROL.size:
            return
        order, number, request = CONTROL.unpack(data)
        if order == CONNECT and given:
            one = served[number] = ServedConnection(engine, socket.socket(fileno=given[0]))
            threading.Thread(target=one.run, name=f"connection {number}", daemon=True).start()
        elif number in served:
            served[number].interrupt(request)


class ServedConnection:
    """One connection, served by a thread of its own."""

    def __init__(self, engine: Engine, to: socket.socket) -> None:
        self._engine = engine
        self._to = to
        self._lock = threading.Lock()
        self._request = 0
        self._connection: SourceConnection | None = None
        self._rows = Rows((), iter(()))

    def run(self) -> None:
        """Answers requests until the other side closes the socket."""
        with self._to:
            greeting = _try(self._connect)
            connection = self._connection
            try:
                send(self._to, greeting)
                if connection is not None:
                    self._answer_all(connection)
            except OSError:
                pass  # the other side has ended
            finally:
                with self._lock:
                    self._connection = None
                if connection is not None:
                    connection.close()

    def interrupt(self, request: int) -> None:
        """Stops the statement of a request that is not answered yet. Thread-safe."""
        with self._lock:
            if self._request == request and self._connection is not None:
                self._connection.interrupt()

    def _connect(self) -> WireMessage:
        self._connection = self._engine.connect()
        tables = {label: [pack(note) for note in notes] for label, notes in self._engine.table_notes.items()}
        notes = [pack(note) for note in self._engine.notes]
        return {"notes": notes, "table_notes": tables, "formats": dict(self._engine.formats)}

    def _answer_all(self, connection: SourceConnection) -> None:
        while (message := receive(self._to)) is not None:
            with self._lock:
                self._request = message["request"]
            answer = _try(partial(self._answer, connection, message))
            with self._lock:
                self._request = 0
            try:
                send(self._to, answer)
            except TooLarge:
                send(self._to, error_message(_too_large()))

    def _answer(self, connection: SourceConnection, message: WireMessage) -> WireMessage:
        kind = message["do"]
        if kind == "execute":
            return self._execute(connection, message["sql"])
        if kind == "fetch":
            limits = Limits(**message["limits"])
            bounds = {"keep": message["keep"], "cell": message["cell"]}
            found = connection.fetch(message["sql"], limits, **bounds, parameters=message["parameters"])
            return {"result": dataclasses.asdict(found)}
        if kind == "query":
            self._rows = connection.query(message["sql"], message["parameters"])
            return {"columns": self._rows.columns}
        if kind == "more":
            return self._more()
        rows, self._rows = self._rows, Rows((), iter(()))
        rows.close()
        if kind == "reset":
            connection.reset()
        return {}

    def _execute(self, connection: SourceConnection, sql: str) -> WireMessage:
        rows = connection.execute(sql)
        found: list[list[Any]] = []
        for row in rows:
            if len(found) >= _CATALOG_ROWS:
                raise _too_large()
            found.append(_encode_row(row, rows))
        return {"columns": rows.columns, "rows": found}

    def _more(self) -> WireMessage:
        batch: list[list[Any]] = []
        characters = 0
        for row in self._rows:
            batch.append(_encode_row(row, self._rows))
            characters += sum(len(value) for value in batch[-1] if isinstance(value, str))
            if len(batch) >= _BATCH_ROWS or characters >= _BATCH_CHARACTERS:
                return {"rows": batch, "done": False}
        return {"rows": batch, "done": True}


def _try(work: Callable[[], WireMessage]) -> WireMessage:
    """Return the answer of some work, or the error that the other side raises."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - the other side raises it
        return error_message(error)


def _encode_row(row: Sequence[Any], of: Rows) -> list[Any]:
    return pack_row([plain(value, of.binary) for value in row])


def _too_large() -> SqlTooLarge:
    return SqlTooLarge(reason="its result is larger than can be sent. Select fewer columns, or cut long values.")
