"""A run's events as server-sent events, which a client can resume anywhere.

An event is encoded once for all clients that have read as far.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self
from weakref import WeakValueDictionary

from ag_ui.core import CustomEvent

from longthread.errors import InvalidInput
from longthread.model.run import Event, Run
from longthread.runs.streams.hub import Hub, RunPlace, RunWatch
from longthread.server.events import INTERRUPTED, Encoder

HEARTBEAT_SECONDS = 15.0
"""The longest silence of a stream: proxies and browsers drop silent ones."""
RETRY_MS = 1000
"""How long a browser waits before it reconnects."""

KEPT_EVENTS = 64
"""Encoded events that are kept for slow clients. One that is further behind encodes the run again for itself."""

PATTERN = r"^(?:([0-9]{1,15})(?:\.([0-9]{1,6}))?)?$"
"""The `id:` of an event as `Position` reads it, or nothing."""
_POSITION = re.compile(PATTERN)


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """How far a client has read: all of event `seq`, and `part` frames of the next.

    One event may become several AG-UI events, each a frame with its own id: the connection may break between any two.
    The last one's id is `seq`; those before are `seq-1.1`, `seq-1.2`, …
    """

    seq: int = 0
    part: int = 0

    @classmethod
    def parse(cls, text: str | None) -> Position:
        """The position of an `id:`. Raises InvalidInput for any other text."""
        if not text:
            return cls()
        found = _POSITION.fullmatch(text)
        if found is None:
            raise InvalidInput(reason="Last-Event-ID and `after` take the `id` of an event of this stream, such as 7.")
        return cls(int(found[1]), int(found[2] or 0))

    def __str__(self) -> str:
        return f"{self.seq}.{self.part}" if self.part else str(self.seq)


Encoded = list[tuple[Position, str]]
"""AG-UI events as JSON, each with the position after it."""


def encoded(encoder: Encoder, event: Event) -> Encoded:
    """Encode one event; `encoder` has encoded all earlier ones of its run.

    One event may become several of AG-UI, and the connection may break between any two: each has its own position.
    """
    piece = encoder.more_text(event)
    if piece is not None:
        return [(Position(event.seq), piece)]
    made = encoder.encode(event)
    places = [Position(event.seq - 1, part) for part in range(1, len(made))] + [Position(event.seq)]
    return [(place, each.model_dump_json(by_alias=True)) for place, each in zip(places, made, strict=False)]


class SharedEncoder:
    """Encodes a run's events once. Its readers have all read the run up to event `at`, or kept events before it."""

    def __init__(self) -> None:
        self.at = 0
        self.readers = 0
        self._encoder = Encoder()
        self._kept: dict[int, Encoded] = {}

    def takes(self, encoder: Encoder, seq: int) -> bool:
        """Return whether a reader whose own encoder has encoded up to event `seq` may go on with this one."""
        if self.at < seq and not self.readers:
            self._encoder, self.at = encoder, seq
            self._kept.clear()
        elif self.at != seq or not self._encoder.stands_as(encoder):
            return False
        self.readers += 1
        return True

    def encoded(self, event: Event) -> Encoded | None:
        """Encode the next event; an earlier one comes as it was encoded, or is None if it is no longer kept."""
        if event.seq <= self.at:
            return self._kept.get(event.seq)
        made, self.at = encoded(self._encoder, event), event.seq
        if self.readers > 1:
            self._kept[event.seq] = made
            if len(self._kept) > KEPT_EVENTS:
                del self._kept[next(iter(self._kept))]
        return made


class Encoders:
    """The shared encoders of the runs that are read."""

    def __init__(self) -> None:
        self._encoders: WeakValueDictionary[RunPlace, SharedEncoder] = WeakValueDictionary()

    def of(self, place: RunPlace) -> SharedEncoder:
        found = self._encoders.get(place)
        if found is None:
            found = self._encoders[place] = SharedEncoder()
        return found


class RunReader:
    """One client's reading of a run, from position `read` on. Use as a context manager."""

    def __init__(
        self, hub: Hub, encoders: Encoders, place: RunPlace, read: Position, goes_on: Callable[[], bool] | None = None
    ) -> None:
        self.position = read
        self._hub = hub
        self._place = place
        self._goes_on = goes_on
        self._shared = encoders.of(place)
        self._own: Encoder | None = None
        self._stack = ExitStack()
        self._watch: RunWatch

    def __enter__(self) -> Self:
        self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def halts(self) -> bool:
        """Whether the run has ended or waits for a person, after what was read."""
        return self._watch.halts

    async def read(self, *, patience: float | None = None) -> Encoded | None:
        """Wait for what comes next; as `RunWatch.read`."""
        while True:
            events = await self._watch.read(patience=patience)
            if not events:
                return [] if events == [] else None
            fresh = self._fresh(events)
            if fresh is None:
                self._end()
                self._begin()
            elif fresh:
                return fresh

    def _begin(self) -> None:
        """Read the run from its first event on: the encoder must know what is open, of what the client has read too."""
        self._watch = self._stack.enter_context(self._hub.watch(*self._place, goes_on=self._goes_on))
        self._own = Encoder()

    def _end(self) -> None:
        self._stack.close()
        if self._own is None:
            self._shared.readers -= 1

    def _fresh(self, events: list[Event]) -> Encoded | None:
        """Return what the client has not read; None if the shared encoder no longer keeps it."""
        fresh: Encoded = []
        for event in events:
            made = self._encoded(event)
            if made is None:
                return None
            fresh += [each for each in made if each[0] > self.position]
        if fresh:
            self.position = fresh[-1][0]
        return fresh

    def _encoded(self, event: Event) -> Encoded | None:
        if self._own is None:
            return self._shared.encoded(event)
        made = encoded(self._own, event)
        if self._shared.takes(self._own, event.seq):
            self._own = None
        return made


def frame(data: str, place: object = None) -> str:
    """One server-sent event. Without a place it has no id, and is not resumed from."""
    return f"id: {place}\ndata: {data}\n\n" if place else f"data: {data}\n\n"


def interrupted() -> str:
    """Return the last event of a stream whose run no process executes, as JSON."""
    return CustomEvent(name=INTERRUPTED, value={}).model_dump_json(by_alias=True)


class RunStream:
    """One client's stream of a run, from what it has not read yet to the run's end.

    It ends early when the server closes (`closing`), when the run waits for a person, and with
    `longthread.interrupted` when the run's process is gone.
    """

    def __init__(self, hub: Hub, encoders: Encoders, run: Run, *, read: Position, closing: asyncio.Event) -> None:
        # The last events of runs that the closing server stopped are still read.
        goes_on = lambda: not closing.is_set()  # noqa: E731
        self._reader = RunReader(hub, encoders, (run.thread_id, run.id), read, goes_on)
        self._closing = closing

    async def __aiter__(self) -> AsyncIterator[str]:
        yield f"retry: {RETRY_MS}\n\n"
        with self._reader as reader:
            while (read := await reader.read(patience=HEARTBEAT_SECONDS)) != []:
                yield ": beat\n\n" if read is None else "".join(frame(data, place) for place, data in read)
            if not reader.halts and not self._closing.is_set():
                yield frame(interrupted())
