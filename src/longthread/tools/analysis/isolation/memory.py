"""How much memory a worker may take."""

from __future__ import annotations

import os
import resource
import sys
import threading
import time

_OVERHEAD_MB = 768
"""Address space, beside what an engine counts as its memory: stacks of its threads, arenas, what it maps."""
_LOOKED_AT = 0.05
_MB = 1_000_000


def bound(megabytes: int, overhead: int = _OVERHEAD_MB) -> None:
    """Bounds this process: on Linux by its address space, so that a larger allocation fails; elsewhere, where that
    limit is not kept, by a thread that ends the process when it has grown too large. `overhead` are megabytes of
    address space that are no memory."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        most = _address_space() + (megabytes + overhead) * _MB
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    else:
        watch(megabytes)


def watch(megabytes: int) -> None:
    """Ends this process when it has had more resident memory than it had now and `megabytes`."""
    most = _peak() + megabytes * _MB
    threading.Thread(target=_watched, args=(most,), name="longthread-memory", daemon=True).start()


def _watched(most: int) -> None:
    while _peak() < most:
        time.sleep(_LOOKED_AT)
    os._exit(1)


def _peak() -> int:
    """Bytes of resident memory that this process has had at most."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _address_space() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - not a file of anybody's
        return int(file.read().split()[0]) * resource.getpagesize()
