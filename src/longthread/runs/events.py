"""A run's event stream: numbered, stored before it is published, readable again from any number on.

The pending text of all runs of a process is written together: one transaction for many, a few times a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from longthread.errors import StoreError
from longthread.model.entry import Draft, Entry
from longthread.model.run import Approval, Event, EventType, Mark, Run, RunStatus
from longthread.runs.hub import Hub, RunPlace
from longthread.store import log, run_events, runs, wait_list
from longthread.store.driver import Driver, Transaction
from longthread.store.run_rows import BEGUN, events_of_run
from longthread.store.runs import Lease, LeaseCheck

CallOff = Callable[[Transaction, LeaseCheck], Awaitable[None]]
"""Ends a run that was stopped before it waits for a person."""
TICK_SECONDS = 0.1
"""How long text waits at most, so that it is written with that of other runs."""
_LONGEST_PAUSE = 2.0
"""Seconds between two attempts while the store fails, at most."""
_logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Piece:
    """A piece of a reply's text. It grows until it has its number `seq`, with which it is stored."""

    message_id: str
    text: str
    at: datetime
    seq: int = 0


class EventStream:
    """Publishes the events of one run, in order.

    Events about a step or the run are marks on its row, which their owner stores (`number`); warnings are stored here,
    and text with the next transaction of the run or by the teller. Once a text is a reply, the reply's step carries its
    events (`reply`).
    """

    def __init__(self, store: Driver, lease: Lease, hub: Hub, teller: Teller, *, last: int = 0) -> None:
        self.lease = lease
        self._store = store
        self._hub = hub
        self._teller = teller
        self._last = self._told = last
        self._sure = True
        self._due: list[Event] = []
        self._writing = asyncio.Lock()
        self._message_id: str | None = None
        self._pieces: list[_Piece] = []
        # Pieces that are not known to be stored, also of earlier replies.
        self._unsaved: list[_Piece] = []

    def open(self, run: Run) -> None:
        """This process executes the run from now on."""
        has_just_begun = self._last == 1 and self.lease.attempt == 1
        self._hub.enter(*self._place, list(events_of_run(run, BEGUN)) if has_just_begun else ())

    def close(self) -> None:
        """This process no longer executes the run."""
        self._unsaved = []
        self._hub.leave(*self._place)

    def number(self) -> int:
        self._last += 1
        return self._last

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[tuple[Transaction, LeaseCheck]]:
        """Begin a transaction of the run, with its lease checked. After its commit, watchers get the events that it
        adds.

        A run has one at a time, so that watchers get its events in the order of their numbers.

        Raises:
            LeaseLost: another process has the run.
        """
        async with self._writing:
            sure, self._sure, self._due = self._sure, False, []
            async with self._store.writing() as tx:
                yield tx, await runs.check(tx, self.lease)
            self._tell(sure)

    def add(self, events: Iterable[Event]) -> None:
        """Add events that the transaction stores, in order. Watchers get each event once, also if it was added
        before."""
        self._due += events

    async def publish(self, event_type: EventType, **data: Any) -> None:
        """Store an event and tell it."""
        async with self.writing() as (tx, _):
            await self.flush_with(tx)
            await self._append(tx, self.number(), event_type, data, datetime.now(UTC))

    def publish_text(self, message_id: str, delta: str) -> None:
        """Publish a piece of the answer, soon. Pieces in quick succession become one event."""
        if message_id != self._message_id:
            self._message_id, self._pieces = message_id, []
        last = self._pieces[-1] if self._pieces else None
        if last is not None and not last.seq:
            last.text += delta
            return
        piece = _Piece(message_id, delta, datetime.now(UTC))
        self._pieces.append(piece)
        self._unsaved.append(piece)
        self._teller.want(self)

    @property
    def unfinished_reply(self) -> tuple[str, str]:
        """Return what was published of a reply that has not come, without what was withdrawn, and the reply's id. Of
        several attempts it is the last that said something."""
        return "".join(piece.text for piece in self._pieces), self._message_id or ""

    async def withdraw_text(self, message_id: str) -> None:
        """Withdraw the published text of a reply: it was thinking. The event of the reply corrects it."""
        if message_id != self._message_id:
            return
        self._hub.drop_unwatched(*self._place)  # who comes later must not see it
        pieces, self._pieces = self._pieces, []
        self._unsaved = [piece for piece in self._unsaved if piece not in pieces]
        numbers = [piece.seq for piece in pieces if piece.seq]
        if numbers:
            async with self.writing() as (tx, _):
                await run_events.withdraw_text(tx, self.lease, numbers[0], numbers[-1])

    async def flush_with(self, tx: Transaction) -> None:
        """Store the text that waits in a transaction of `writing`."""
        texts = self.texts()
        if texts:
            await run_events.save_texts(tx, texts)

    # For the teller, which writes for many runs at once.

    @property
    def has_text(self) -> bool:
        return bool(self._unsaved)

    @property
    def is_writing(self) -> bool:
        """Whether a transaction of the run is under way."""
        return self._writing.locked()

    async def pause(self) -> None:
        """Keep the run from writing until `go_on`."""
        await self._writing.acquire()
        self._due = []

    def go_on(self) -> None:
        self._writing.release()

    def texts(self) -> list[Event]:
        """Number the text that waits, and return its events, to be stored. Watchers get them after the commit."""
        for piece in self._unsaved:
            piece.seq = piece.seq or self.number()
        texts = [self._text(piece) for piece in self._unsaved]
        self.add(texts)
        return texts

    def tell_texts(self) -> None:
        """Tell the text that the teller has stored."""
        self._tell(self._sure)

    def _text(self, piece: _Piece) -> Event:
        data = {"message_id": piece.message_id, "delta": piece.text}
        return Event(*self._place, piece.seq, "text", data, piece.at)

    def _tell(self, sure: bool) -> None:
        """Send the committed events to watchers. If it is not `sure` that these follow the last sent ones, watchers
        read the store."""
        events = [event for event in self._due if event.seq > self._told]
        if events or not sure:
            self._hub.tell(*self._place, events, after=self._told if sure else None)
        saved = {event.seq for event in self._due}
        self._unsaved = [piece for piece in self._unsaved if piece.seq not in saved]
        self._told, self._sure = max(self._told, *saved, 0), True

    async def reply(self, tx: Transaction, reply: Entry, since: datetime) -> list[Mark]:
        """Return the published text of a reply as marks on its step, which started at `since`, and delete its events.

        Text that the reply does not begin with (white space aside), and text of other messages, stays as it is.
        """
        pieces, self._pieces = self._pieces, []
        told = "".join(piece.text for piece in pieces)
        said = told if reply.text.startswith(told) else told.strip()
        if not said or self._message_id != reply.id or not reply.text.startswith(said):
            await self.flush_with(tx)
            return []
        numbered = [piece.seq for piece in pieces if piece.seq]
        others = [text for text in self.texts() if text.data["message_id"] != reply.id]
        if others:
            await run_events.save_texts(tx, others)
        if numbered:
            await run_events.remove_text(tx, self.lease, numbered[0], numbered[-1])
        first = told.index(said)
        return [_mark(piece, part, since) for piece, part in _parts(pieces, first, first + len(said))]

    async def end(
        self,
        status: RunStatus,
        outcome: Mapping[str, Any],
        *,
        said: Entry | None = None,
        left: Draft | None = None,
        also: Callable[[Transaction], Awaitable[None]] | None = None,
    ) -> None:
        """End the run and its stream in one transaction, with `also`. `said` is the entry with the answer or the
        summary, `left` what was interrupted."""
        async with self.writing() as (tx, held):
            await self.flush_with(tx)
            if left is not None:
                [said] = await log.append(tx, self.lease.thread_id, [left], tip=held.tip, size=held.size, goes_on=True)
            self.add(await runs.end(tx, self.lease, status, outcome, said=said, event=self.number(), held=held))
            if also is not None:
                await also(tx)

    async def wait(self, calls: Sequence[Approval], stopped: CallOff) -> bool:
        """Let the run wait for decisions about these calls, publish them, and release its lease. If somebody has
        stopped the run, publish no calls: `stopped` ends the run in the same transaction. Return whether it waits."""
        calls = sorted(calls, key=lambda call: call.place)
        async with self.writing() as (tx, held):
            await self.flush_with(tx)
            if held.stop_by is None:
                data = {"calls": [call.request() for call in calls]}
                await self._append(tx, self.number(), "waiting", data, datetime.now(UTC))
            await wait_list.let_wait(tx, self.lease.thread_id, self.lease.run_id, calls)
            if held.stop_by is not None:
                await stopped(tx, held)
        if held.stop_by is not None:
            self._hub.note_change(*self._place)
        return held.stop_by is None

    @property
    def _place(self) -> RunPlace:
        return self.lease.thread_id, self.lease.run_id

    async def _append(
        self, tx: Transaction, number: int, event_type: EventType, data: Mapping[str, Any], at: datetime
    ) -> None:
        event = Event(*self._place, number, event_type, dict(data), at)
        await run_events.append_events(tx, [event])
        self.add([event])


def _mark(piece: _Piece, part: tuple[int, int], since: datetime) -> Mark:
    first, stop = part
    mark = Mark.at(piece.seq, "text", piece.at, since=since)
    return replace(mark, chars=stop - first, space=(piece.text[:first], piece.text[stop:]))


def _parts(pieces: Sequence[_Piece], first: int, stop: int) -> Iterator[tuple[_Piece, tuple[int, int]]]:
    """Yield each piece with its part between the characters `first` and `stop` of the joined text."""
    place = 0
    for piece in pieces:
        size = len(piece.text)
        start = min(max(first - place, 0), size)
        yield piece, (start, max(start, min(stop - place, size)))
        place += size


class Teller:
    """Stores the text of this process's runs, and then sends it to watchers. Retries text that cannot be stored.

    A run that writes by itself takes its text along, so the teller leaves it out. It also leaves out a run whose thread
    is locked.
    """

    def __init__(self, store: Driver) -> None:
        self._store = store
        self._waiting: set[EventStream] = set()
        self._work: asyncio.Task[None] | None = None

    def want(self, stream: EventStream) -> None:
        """Note that a run has text that is not stored."""
        self._waiting.add(stream)
        if self._work is None or self._work.done():
            self._work = asyncio.get_running_loop().create_task(self._write_all(), name="teller")

    async def close(self) -> None:
        """End the background work. Each run that has ended has stored its text."""
        if self._work is not None:
            self._work.cancel()
            with suppress(asyncio.CancelledError):
                await self._work

    async def _write_all(self) -> None:
        """Write while any run has text."""
        pause = TICK_SECONDS
        while self._waiting:
            await asyncio.sleep(pause)
            self._waiting = {stream for stream in self._waiting if stream.has_text}
            try:
                await self._write([stream for stream in self._waiting if not stream.is_writing])
                pause = TICK_SECONDS
            except StoreError as error:
                pause = min(2 * pause, _LONGEST_PAUSE)
                _logger.warning("The text of %d runs waits: it could not be stored: %s", len(self._waiting), error)

    async def _write(self, streams: Sequence[EventStream]) -> None:
        """Store the text of runs whose lease is held, and tell it."""
        if not streams:
            return
        paused: list[EventStream] = []
        try:
            for stream in streams:
                await stream.pause()
                paused.append(stream)
            async with self._store.writing() as tx:
                ours = await runs.check_all(tx, [stream.lease for stream in streams])
                held = [stream for stream in streams if stream.lease.run_id in ours]
                await run_events.save_texts(tx, [text for stream in held for text in stream.texts()])
            for stream in held:
                stream.tell_texts()
        finally:
            for stream in paused:
                stream.go_on()
