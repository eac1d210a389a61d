"""Who executes a run: this process, so that others can tell whether it still lives."""

from __future__ import annotations

import os
import socket

from longthread.model.ids import new_id


def new_owner() -> str:
    """A name for one execution by this process: `host/pid/nonce`."""
    return f"{socket.gethostname()}/{os.getpid()}/{new_id()}"


def may_be_alive(owner: str) -> bool:
    """Whether an owner may still be at work: False only for a dead process of this host.

    Owners on other hosts, and pids that were given away again, are told by their leases running out.
    """
    host, pid, _ = owner.rsplit("/", 2)
    if host != socket.gethostname():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
