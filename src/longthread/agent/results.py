"""Calls that run at the same time: their results become entries in the order of the calls, whichever is ready first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.messages import ToolMessage


@dataclass(frozen=True, slots=True)
class Result:
    """A call's result, and the index of the step that made it."""

    step: int
    message: ToolMessage


@dataclass(slots=True)
class Results:
    """The results of one reply's calls that are no entries yet. Hold the lock from `take` to the end of the write."""

    maker: str | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _order: list[str | None] = field(default_factory=list)
    _ready: dict[str | None, Result] = field(default_factory=dict)
    _over: dict[str | None, asyncio.Event] = field(default_factory=dict)

    def expect(self, maker: str | None, calls: Sequence[str | None]) -> None:
        """The calls of the reply `maker` that have no result, in order. What is known of this reply already stays."""
        if maker != self.maker:
            self.maker, self._order, self._ready = maker, list(calls), {}
            self._over = {call: asyncio.Event() for call in calls}

    def end(self, call: str | None) -> None:
        """A call is over: its result is stored, or it has none."""
        if call in self._over:
            self._over[call].set()

    async def before(self, call: str | None) -> None:
        """Wait until the calls that stand before this one in its reply are over: their results are entries then."""
        for each, over in self._over.items():
            if each == call:
                return
            await over.wait()

    def take(self, result: Result) -> list[Result]:
        """Take in a result: those that can become entries now, in order. One that must wait is kept till then."""
        self._ready[result.message.tool_call_id] = result
        due: list[Result] = []
        while self._order and self._order[0] in self._ready:
            due.append(self._ready.pop(self._order.pop(0)))
        return due
