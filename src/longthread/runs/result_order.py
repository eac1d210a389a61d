"""Results of concurrent calls become entries in the order of the calls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from longthread.messages.message import Message


@dataclass(frozen=True, slots=True)
class CallResult:
    """A call's result, and the index of the step that made it."""

    step: int
    message: Message


class Order:
    """The order of one reply's calls, and their results that are no entries yet. Hold the lock from `take` to the
    end of the write."""

    def __init__(self, calls: Sequence[str]) -> None:
        self.lock = asyncio.Lock()
        self._left = list(calls)
        self._ready: dict[str, CallResult] = {}
        self._over = {call: asyncio.Event() for call in calls}

    def end(self, call: str) -> None:
        """Note that a call is over: its result is stored, or it has none."""
        self._over[call].set()

    async def before(self, call: str) -> None:
        """Wait until the calls before this one in its reply are over: their results are entries then."""
        for each, over in self._over.items():
            if each == call:
                return
            await over.wait()

    def take(self, result: CallResult) -> list[CallResult]:
        """Take a result; return those that can become entries now, in order. The others wait."""
        self._ready[str(result.message.tool_call_id)] = result
        due: list[CallResult] = []
        while self._left and self._left[0] in self._ready:
            due.append(self._ready.pop(self._left.pop(0)))
        return due
