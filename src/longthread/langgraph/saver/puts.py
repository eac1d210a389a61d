"""The last put of each namespace, for those who wait for its end or for the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from longthread.langgraph.saver.parent_ids import NamespaceKey
from longthread.model.lru import LRU

PLACES = 1024
"""Namespaces of threads whose last put is remembered."""
NEXT_SECONDS = 0.01
"""So long after a put, the next one is handed in if it waited for nothing else."""


@dataclass(slots=True)
class LastPut:
    """A put: the checkpoint's id, its end, and the loop's time until which the next one is near."""

    id: str
    ended: asyncio.Future[None]
    near: float = 0

    def end(self) -> None:
        self.near = self.ended.get_loop().time() + NEXT_SECONDS
        self.ended.set_result(None)

    @property
    def is_near(self) -> bool:
        """Whether it goes on, or has ended so recently that the next one may not have been handed in yet."""
        return not self.ended.done() or self.ended.get_loop().time() < self.near

    def is_before(self, checkpoint_id: str | None) -> bool:
        """Whether the checkpoint, or the one behind it, is handed in when this put has ended."""
        return not self.ended.done() or (self.id != checkpoint_id and self.is_near)


class Puts:
    """The puts of a saver, on its event loop."""

    def __init__(self) -> None:
        self._last = LRU[NamespaceKey, LastPut](PLACES)
        self._watched: dict[NamespaceKey, set[asyncio.Event]] = {}

    @contextmanager
    def going_on(self, place: NamespaceKey, checkpoint_id: str) -> Iterator[None]:
        """Mark a checkpoint as being put for the block."""
        this = LastPut(checkpoint_id, asyncio.get_running_loop().create_future())
        self._last.put(place, this)
        try:
            yield
        finally:
            this.end()
            for event in self._watched.get(place, ()):
                event.set()

    def last(self, place: NamespaceKey) -> LastPut | None:
        return self._last.peek(place)

    @contextmanager
    def watched(self, place: NamespaceKey) -> Iterator[asyncio.Event]:
        """Return an event that each end of a put there sets, for the block."""
        event = asyncio.Event()
        self._watched.setdefault(place, set()).add(event)
        try:
            yield event
        finally:
            others = self._watched[place]
            others.discard(event)
            if not others:
                del self._watched[place]
