"""The runs that one process may execute at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Slots:
    """Counts the runs that this process executes or is about to, against the `most` that it may.

    Only new questions wait for a slot. What goes on (resumed, claimed, decided about, or another agent's question)
    takes one anyhow: if it waited, a run could wait for itself. `queued` says whether questions wait in the store, and
    `wanted` whether more of them are due than there are slots: then a new question waits behind them.
    """

    most: int
    queued: bool = False
    wanted: bool = False
    _taken: int = 0

    @property
    def free(self) -> int:
        return max(0, self.most - self._taken)

    @property
    def has_room(self) -> bool:
        """Whether a new question may begin at once."""
        return self.free > 0 and not self.wanted

    def take(self) -> None:
        self._taken += 1

    def give(self) -> None:
        self._taken -= 1
