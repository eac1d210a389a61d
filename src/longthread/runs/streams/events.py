"""A run's event stream: numbered, stored before it is published, readable again from any number on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from longthread.model.approval import Approval
from longthread.model.entry import Entry
from longthread.model.event import Event, EventType, Mark
from longthread.model.run import RunStatus
from longthread.runs.streams.hub import Hub, RunPlace
from longthread.store import approvals, runs
from longthread.store.driver import Driver, Transaction
from longthread.store.runs import Lease, LeaseCheck

_TEXT_SECONDS = 0.06
"""Pieces of text that come faster than this are published together."""


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

    def __init__(self, store: Driver, lease: Lease, hub: Hub, *, last: int = 0) -> None:
        self._store = store
        self._lease = lease
        self._hub = hub
        self._last = self._told = last
        self._sure = True
        self._due: list[Event] = []
        self._writing = asyncio.Lock()
        self._message_id: str | None = None
        self._pieces: list[_Piece] = []
        self._text_since = 0.0

    def number(self) -> int:
        self._last += 1
        return self._last

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[tuple[Transaction, LeaseCheck]]:
        """Begin a transaction of the run, with its lease checked. The events that it adds are told after its commit.

        A run has one at a time, so that its events are told in the order of their numbers.

        Raises:
            LeaseLost: another process has the run.
        """
        async with self._writing:
            sure, self._sure, self._due = self._sure, False, []
            async with self._store.writing() as tx:
                yield tx, await runs.check(tx, self._lease)
            events = [event for event in self._due if event.seq > self._told]
            if events or not sure:
                self._hub.tell(*self._place, events, after=self._told if sure else None)
            self._told, self._sure = self._last, True

    def add(self, events: Iterable[Event]) -> None:
        """Add events that the transaction stores, in order. Those that were told before are told once."""
        self._due += events

    async def publish(self, event_type: EventType, **data: Any) -> None:
        """Store an event and tell it."""
        async with self.writing() as (tx, _):
            await self.flush_with(tx)
            await self._append(tx, self.number(), event_type, data, datetime.now(UTC))

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
            async with self.writing() as (tx, _):
                await runs.withdraw_text(tx, self._lease, stored[0], stored[-1])

    async def flush(self) -> None:
        if self._waiting() is not None:
            async with self.writing() as (tx, _):
                await self.flush_with(tx)

    async def flush_with(self, tx: Transaction) -> None:
        """Publish the buffered text in a transaction of `writing`."""
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
        async with self.writing() as (tx, held):
            await self.flush_with(tx)
            await runs.end(tx, self._lease, status, outcome, said=said, event=self.number(), held=held)
            if also is not None:
                await also(tx)
        self._hub.changed(*self._place)

    async def wait(self, calls: Sequence[Approval]) -> None:
        """Let the run wait for decisions about these calls, publish them, and release its lease."""
        calls = sorted(calls, key=lambda call: call.place)
        async with self.writing() as (tx, _):
            await self.flush_with(tx)
            data = {"calls": [call.request() for call in calls]}
            await self._append(tx, self.number(), "waiting", data, datetime.now(UTC))
            await approvals.let_wait(tx, self._lease.thread_id, self._lease.run_id, calls)

    @property
    def _place(self) -> RunPlace:
        return self._lease.thread_id, self._lease.run_id

    def _waiting(self) -> _Piece | None:
        return self._pieces[-1] if self._pieces and self._pieces[-1].seq is None else None

    async def _append(
        self, tx: Transaction, number: int, event_type: EventType, data: Mapping[str, Any], at: datetime
    ) -> None:
        event = Event(*self._place, number, event_type, dict(data), at)
        await runs.append_events(tx, [event])
        self.add([event])


def _parts(pieces: Sequence[_Piece], first: int, stop: int) -> Iterator[tuple[_Piece, tuple[int, int]]]:
    """Yield each piece with its part between the characters `first` and `stop` of the joined text."""
    place = 0
    for piece in pieces:
        size = len(piece.text)
        start = min(max(first - place, 0), size)
        yield piece, (start, max(start, min(stop - place, size)))
        place += size
