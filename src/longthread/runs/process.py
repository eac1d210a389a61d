"""The names of workers, which tell whether a process of this host still lives."""

from __future__ import annotations

import os
import re
import socket
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from longthread.model.ids import new_id

_NAME = re.compile(r"(?P<where>.+)/(?P<pid>[1-9][0-9]{0,8})/[^/]*", re.DOTALL)
"""As `new_worker` makes them."""


def new_worker() -> str:
    """Return a new worker's id, for this process: `where/pid/nonce`."""
    return f"{here()}/{os.getpid()}/{new_id()}"


def may_be_alive(owner: str) -> bool:
    """Return whether an owner may still work: False only for a dead process of this host.

    Other owners (of other hosts, of other containers, with reused pids or unknown names) are dead when they no longer
    renew their rows.
    """
    name = _NAME.fullmatch(owner)
    if name is None or name["where"] != here():
        return True
    try:
        os.kill(int(name["pid"]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def place_of(owner: str) -> str:
    """Say where a worker is, for people."""
    name = _NAME.fullmatch(owner)
    return f"Process {name['pid']} on {name['where'].split(':')[0]}" if name is not None else "Another process"


def here() -> str:
    """Name the scope of a pid: the host, and on Linux its boot and its pid namespace. Containers may share a host
    name, and so may hosts."""
    return ":".join([socket.gethostname(), *_kernel()])


@lru_cache(maxsize=1)
def _kernel() -> tuple[str, ...]:
    with suppress(OSError):
        booted = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return booted, str(Path("/proc/self/ns/pid").stat().st_ino)
    return ()
