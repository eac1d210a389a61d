"""The C library's allocator, in a process that lives long."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

_TRIM_THRESHOLD, _ARENA_MAX = -1, -8
"""Names of settings, as in malloc.h."""
_ARENAS = 2
_FREE_BYTES = 128 * 1024


def give_back_freed_memory() -> None:
    """Let glibc give freed memory back to the system; elsewhere, do nothing.

    It has up to eight arenas a processor, each fragmented by the threads that use it, and learns to keep more and more
    for later. Threads of ours hold Python's lock when they allocate: two arenas are enough.
    """
    if sys.platform == "linux":
        with suppress(AttributeError):  # another C library
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(_ARENA_MAX, _ARENAS)
            mallopt(_TRIM_THRESHOLD, _FREE_BYTES)
