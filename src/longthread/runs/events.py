"""A run's event stream: numbered, stored before it is published, readable again from any number on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from longthread.model.approval import Approval
from longthread.model.entry import Entry
from longthread.model.event import FINAL, Event, EventType, Mark
from longthread.model.run import RunStatus
from longthread.store import approvals, runs
from longthread.store.driver import Driver, Transaction
from longthread.store.runs import Lease

_POLL_SECONDS = 0.25
"""How often a watcher looks for events that another process wrote."""
_TEXT_SECONDS = 0.06
"""Pieces of text that come faster than this are published together."""


class Notifier:
    """Wakes the watchers in this process when a run has stored a new event."""

    def __init__(self) -> None:
        self._events: dict[str, asyncio.Event] = {}

    def notify(self, run_id: str) -> None:
        if run_id in self._events:
            self._events.pop(run_id).set()

    async def wait(self, run_id: str) -> None:
        """Wait for the next notification, or for the interval of a poll."""
        event = self._events.setdefault(run_id, asyncio.Event())
        try:
            async with asyncio.timeout(_POLL_SECONDS):
                await event.wait()
        except TimeoutError:
            return


@dataclass(frozen=True, slots=True)
class _Piece:
    """A published piece of text; `seq` is None until it is stored."""

    text: str
    at: datetime
    seq: int | None = None


class EventStream:
    """Publishes the events of one run, in order.

    Events about a step or the run are marks on its row, which their owner stores (`number`); warnings and text are
    stored here. Once a text is a reply, the reply's step carries its events (`reply`).
    """

    def __init__(self, store: Driver, lease: Lease, notifier: Notifier, *, last: int = 0) -> None:
        self._store = store
        self._lease = lease
        self._notifier = notifier
        self._last = last
        self._message_id: str | None = None
        self._pieces: list[_Piece] = []
        self._text_since = 0.0

    def number(self) -> int:
        self._last += 1
        return self._last

    def notify(self) -> None:
        self._notifier.notify(self._lease.run_id)

    async def publish(self, event_type: EventType, **data: Any) -> None:
        """Store an event and wake the watchers."""
        async with self._store.writing() as tx:
            await runs.check(tx, self._lease)
            await self.flush_with(tx)
            await self._append(tx, self.number(), event_type, data, datetime.now(UTC))
        self.notify()

    async def publish_text(self, message_id: str, delta: str) -> None:
        """Publish a piece of the answer. Pieces in quick succession become one event."""
        waiting = self._waiting()
        if waiting and message_id == self._message_id:
            self._pieces[-1] = replace(waiting, text=waiting.text + delta)
        else:
            await self.flush()
            if message_id != self._message_id:
                self._message_id, self._pieces = message_id, []
            self._pieces.append(_Piece(delta, datetime.now(UTC)))
            self._text_since = time.monotonic()
        if time.monotonic() - self._text_since >= _TEXT_SECONDS:
            await self.flush()

    async def withdraw_text(self, message_id: str) -> None:
        """Withdraw the published text of a reply: it was thinking. The event of the reply corrects it."""
        if message_id != self._message_id:
            return
        stored = [piece.seq for piece in self._pieces if piece.seq is not None]
        self._pieces = []
        if stored:
            async with self._store.writing() as tx:
                await runs.check(tx, self._lease)
                await runs.remove_text(tx, self._lease, stored[0], stored[-1])

    async def flush(self) -> None:
        if self._waiting() is None:
            return
        async with self._store.writing() as tx:
            await runs.check(tx, self._lease)
            await self.flush_with(tx)
        self.notify()

    async def flush_with(self, tx: Transaction) -> None:
        """Publish the buffered text in a transaction that has checked the lease. Call `notify` after the commit."""
        waiting = self._waiting()
        if waiting is not None:
            self._pieces[-1] = replace(waiting, seq=self.number())
            data = {"message_id": self._message_id, "delta": waiting.text}
            await self._append(tx, self._last, "text", data, waiting.at)

    async def reply(self, tx: Transaction, reply: Entry, since: datetime) -> list[Mark]:
        """Return the published text of a reply as marks on its step, which started at `since`, and delete its events.

        Text that the reply does not begin with (white space aside), and text of other messages, stays as it is.
        """
        told = "".join(piece.text for piece in self._pieces)
        said = told if reply.text.startswith(told) else told.strip()
        if not said or self._message_id != reply.id or not reply.text.startswith(said):
            await self.flush_with(tx)
            return []
        pieces, self._pieces = self._pieces, []
        stored = [piece.seq for piece in pieces if piece.seq is not None]
        if stored:
            await runs.remove_text(tx, self._lease, stored[0], stored[-1])
        first = told.index(said)
        return [self._mark(piece, part, since) for piece, part in _parts(pieces, first, first + len(said))]

    def _mark(self, piece: _Piece, part: tuple[int, int], since: datetime) -> Mark:
        first, stop = part
        mark = Mark.at(piece.seq or self.number(), "text", piece.at, since=since)
        return replace(mark, chars=stop - first, space=(piece.text[:first], piece.text[stop:]))

    async def end(
        self,
        status: RunStatus,
        outcome: Mapping[str, Any],
        *,
        said: Entry | None = None,
        also: Callable[[Transaction], Awaitable[None]] | None = None,
    ) -> None:
        """End the run and its stream in one transaction, with `also`. `said` is the entry with the answer or the
        summary."""
        async with self._store.writing() as tx:
            held = await runs.check(tx, self._lease)
            await self.flush_with(tx)
            await runs.end(tx, self._lease, status, outcome, said=said, event=self.number(), held=held)
            if also is not None:
                await also(tx)
        self.notify()

    async def wait(self, calls: Sequence[Approval]) -> None:
        """Let the run wait for decisions about these calls, publish them, and release its lease."""
        calls = sorted(calls, key=lambda call: call.place)
        async with self._store.writing() as tx:
            await runs.check(tx, self._lease)
            await self.flush_with(tx)
            data = {"calls": [call.request() for call in calls]}
            await self._append(tx, self.number(), "waiting", data, datetime.now(UTC))
            await approvals.let_wait(tx, self._lease.thread_id, self._lease.run_id, calls)
        self.notify()

    def _waiting(self) -> _Piece | None:
        return self._pieces[-1] if self._pieces and self._pieces[-1].seq is None else None

    async def _append(
        self, tx: Transaction, number: int, event_type: EventType, data: Mapping[str, Any], at: datetime
    ) -> None:
        event = Event(self._lease.thread_id, self._lease.run_id, number, event_type, dict(data), at)
        await runs.append_events(tx, [event])


def _parts(pieces: Sequence[_Piece], first: int, stop: int) -> Iterator[tuple[_Piece, tuple[int, int]]]:
    """Yield each piece with its part between the characters `first` and `stop` of the joined text."""
    place = 0
    for piece in pieces:
        size = len(piece.text)
        start = min(max(first - place, 0), size)
        yield piece, (start, max(start, min(stop - place, size)))
        place += size


async def watch(
    store: Driver,
    notifier: Notifier,
    thread_id: str,
    run_id: str,
    *,
    after: int = 0,
    lives: Callable[[], bool] = lambda: True,
) -> AsyncIterator[Event]:
    """Yield the run's events after number `after`, up to the final one, whichever process executes the run. Ends
    early when `lives` returns False."""
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
            await notifier.wait(run_id)
