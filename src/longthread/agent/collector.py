"""Thousands of objects: Python's cyclic garbage collector looks at each again and again while they are made, and to
free them takes its time too."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_pauses = 0
_was_enabled = False


@contextmanager
def paused() -> Iterator[None]:
    """Hold the collector while many objects are made that all stay. Pauses may overlap, from several threads too; at
    the end of the last it is as it was. Nothing may be awaited inside."""
    global _pauses, _was_enabled
    with _lock:
        if _pauses == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _lock:
            _pauses -= 1
            if _pauses == 0 and _was_enabled:
                gc.enable()


def let_go(objects: list[Any]) -> None:
    """Drop a list of thousands of objects, which mostly nobody else has any more, when the running task next waits.

    To free them takes as long as to make them, and who has asked for others need not wait for that.
    """
    asyncio.get_running_loop().call_soon(id, objects)
