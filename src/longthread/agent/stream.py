"""A run's event stream: numbered, stored before it is told, readable again by anyone from any number on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from longthread.model.event import FINAL, Event, EventType
from longthread.model.run import RunStatus
from longthread.store import runs
from longthread.store.driver import Driver, Transaction
from longthread.store.runs import Lease

_POLL_SECONDS = 0.25
"""How often a watcher looks for events that another process wrote."""
_TEXT_SECONDS = 0.06
"""Pieces of text that come faster than this are told together."""


class Bell:
    """Wakes the watchers of this process when a run has told something new."""

    def __init__(self) -> None:
        self._rung: dict[str, asyncio.Event] = {}

    def ring(self, run_id: str) -> None:
        """Something new is stored."""
        if run_id in self._rung:
            self._rung.pop(run_id).set()

    async def wait(self, run_id: str) -> None:
        """Wait for the next ring, or for as long as a poll may take."""
        event = self._rung.setdefault(run_id, asyncio.Event())
        try:
            await asyncio.wait_for(event.wait(), _POLL_SECONDS)
        except TimeoutError:
            return


class EventStream:
    """Tells the events of one run, in order."""

    def __init__(self, store: Driver, lease: Lease, bell: Bell, *, last: int = 0) -> None:
        self._store = store
        self._lease = lease
        self._bell = bell
        self._last = last
        self._text: dict[str, Any] | None = None
        self._text_since = 0.0

    async def tell(self, event_type: EventType, **data: Any) -> None:
        """Store an event and wake those who watch."""
        async with self._store.writing() as tx:
            await self._append(tx, event_type, data)
        self._bell.ring(self._lease.run_id)

    async def tell_with(self, tx: Transaction, event_type: EventType, **data: Any) -> None:
        """Store an event in a transaction that holds what it is about. Call `ring` when that has been committed."""
        await self._append(tx, event_type, data)

    def ring(self) -> None:
        """Wake those who watch, after a commit."""
        self._bell.ring(self._lease.run_id)

    async def tell_text(self, message_id: str, delta: str) -> None:
        """Tell a piece of the answer. Pieces that come in quick succession are told as one."""
        if self._text and self._text["message_id"] == message_id:
            self._text["delta"] += delta
        else:
            await self.flush()
            self._text, self._text_since = {"message_id": message_id, "delta": delta}, time.monotonic()
        if time.monotonic() - self._text_since >= _TEXT_SECONDS:
            await self.flush()

    async def flush(self) -> None:
        """Tell the text that has been gathered."""
        if self._text is None:
            return
        async with self._store.writing() as tx:
            await self._append_text(tx)
        self._bell.ring(self._lease.run_id)

    async def end(self, status: RunStatus, outcome: Mapping[str, Any]) -> None:
        """End the run and its stream, both or neither."""
        async with self._store.writing() as tx:
            await self._append(tx, _FINAL_OF[status], outcome)
            await runs.end(tx, self._lease, status, outcome)
        self._bell.ring(self._lease.run_id)

    async def _append(self, tx: Transaction, event_type: EventType, data: Mapping[str, Any]) -> None:
        await self._append_text(tx)
        await self._store_event(tx, event_type, data)

    async def _append_text(self, tx: Transaction) -> None:
        if self._text is not None:
            text, self._text = self._text, None
            await self._store_event(tx, "text", text)

    async def _store_event(self, tx: Transaction, event_type: EventType, data: Mapping[str, Any]) -> None:
        await runs.check(tx, self._lease)
        self._last += 1
        event = Event(self._lease.thread_id, self._lease.run_id, self._last, event_type, dict(data), datetime.now(UTC))
        await runs.append_events(tx, [event])


_FINAL_OF: dict[RunStatus, EventType] = {"finished": "finished", "paused": "paused", "failed": "failed"}


async def watch(
    store: Driver, bell: Bell, thread_id: str, run_id: str, *, after: int = 0, lives: Callable[[], bool] = lambda: True
) -> AsyncIterator[Event]:
    """The run's events behind number `after`, as they come, whichever process executes it, up to its final one.

    Ends early when `lives` says that no more will come.
    """
    while True:
        alive = lives()
        async with store.reading() as tx:
            events = await runs.events_after(tx, thread_id, run_id, after)
        for event in events:
            after = event.seq
            yield event
            if event.type in FINAL:
                return
        if not events:
            if not alive:
                return
            await bell.wait(run_id)
