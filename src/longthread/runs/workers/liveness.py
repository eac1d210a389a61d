"""Which workers live: by their names, whether a process of this host does; by their renewals, which are dead.

Clocks of the wall differ between hosts, and step: when a laptop wakes, when one is set. So none is asked. A worker
counts its renewals in its row. Dead is one whose number stands still while this process looks, by its own monotonic
clock.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from longthread.model.ids import new_id

_NAME = re.compile(r"(?P<where>.+)/(?P<pid>[1-9][0-9]{0,8})/[^/]*", re.DOTALL)
"""As `new_worker` makes them."""
SILENT_SECONDS = 10.0
"""A worker whose number of renewals has stood still for so long is dead."""
MOST_BETWEEN_LOOKS = 3.5
"""At most so much of the time between two looks counts. If the machine slept, or its store was away, everybody stood
still, and the others must have time to renew."""


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


@dataclass(slots=True)
class _Silence:
    renewals: int
    seconds: float = 0.0


class WorkerWatch:
    """Watches the workers of a store, look by look."""

    def __init__(self) -> None:
        self._seen: dict[str, _Silence] = {}
        self._looked: float | None = None

    def dead(self, workers: Mapping[str, int], *, own: str | None, at: float) -> dict[str, int]:
        """Note the renewals of all workers, and return those workers of them that are dead: of this host because the
        process is gone, of any because they are silent. Never `own`, this process.

        Args:
            workers: their numbers of renewals, as just read.
            at: this process' monotonic clock, in seconds.
        """
        passed = min(at - self._looked, MOST_BETWEEN_LOOKS) if self._looked is not None else 0.0
        self._looked = at
        seen: dict[str, _Silence] = {}
        for worker, renewals in workers.items():
            silence = self._seen.get(worker)
            if silence is None or silence.renewals != renewals:
                silence = _Silence(renewals)
            else:
                silence.seconds += passed
            seen[worker] = silence
        self._seen = seen
        return {
            worker: silence.renewals
            for worker, silence in seen.items()
            if worker != own and (silence.seconds >= SILENT_SECONDS or not may_be_alive(worker))
        }
