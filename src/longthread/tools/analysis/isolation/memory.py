"""The memory limit of a worker."""

from __future__ import annotations

import os
import resource
import sys
import threading
import time

_OVERHEAD_MB = 768
"""Address space, on top of what an engine counts as its memory: stacks of its threads, arenas, what it maps."""
_LOOKED_AT = 0.05
_MB = 1_000_000


def limit_memory(megabytes: int, overhead: int = _OVERHEAD_MB) -> None:
    """Limits the memory of this process. On Linux its address space is limited, so that a larger allocation fails;
    `overhead` is address space that is no memory. Elsewhere a thread ends the process once it has grown too large."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        most = _address_space() + (megabytes + overhead) * _MB
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    else:
        watch(megabytes)


def watch(megabytes: int) -> None:
    """Starts a thread that ends this process once its resident memory has grown by `megabytes`."""
    most = _peak() + megabytes * _MB
    threading.Thread(target=_exit_above_limit, args=(most,), name="longthread-memory", daemon=True).start()


def _exit_above_limit(most: int) -> None:
    while _peak() < most:
        time.sleep(_LOOKED_AT)
    os._exit(1)


def _peak() -> int:
    """Peak resident memory in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _address_space() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - not a file of anybody's
        return int(file.read().split()[0]) * resource.getpagesize()
