"""Which workers are dead, as this process sees it.

Clocks of the wall differ between hosts, and step: when a laptop wakes, when one is set. So none is asked. A worker
counts its renewals in its row. Dead is one whose number stands still while this process looks, by its own monotonic
clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from longthread.runs.process import may_be_alive

SILENT_SECONDS = 10.0
"""A worker whose number of renewals has stood still for so long is dead."""
MOST_BETWEEN_LOOKS = 3.5
"""At most so much of the time between two looks counts. If the machine slept, or its store was away, everybody stood
still, and the others must have time to renew."""


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
