"""A run's events as server-sent events, which a client can resume anywhere."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

from ag_ui.core import BaseEvent, CustomEvent

from longthread.errors import InvalidInput
from longthread.model.event import Event
from longthread.model.run import Run
from longthread.runs.streams.hub import Hub
from longthread.server.events import INTERRUPTED, Encoder

HEARTBEAT_SECONDS = 15.0
"""The longest silence of a stream: proxies and browsers drop silent ones."""
RETRY_MS = 1000
"""How long a browser waits before it reconnects."""

_POSITION = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,6}))?")


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


def frames_of(encoder: Encoder, event: Event) -> list[tuple[Position, str]]:
    """The frames of one event, each with the position after it. `encoder` has encoded all earlier events."""
    made = encoder.encode(event)
    places = [Position(event.seq - 1, part) for part in range(1, len(made))] + [Position(event.seq)]
    return [(place, frame(each, place)) for place, each in zip(places, made, strict=False)]


def frame(event: BaseEvent, place: Position | None = None) -> str:
    """One server-sent event. Without a place it has no id, and is not resumed from."""
    head = f"id: {place}\n" if place else ""
    return f"{head}data: {event.model_dump_json(by_alias=True)}\n\n"


class RunStream:
    """One client's stream of a run, from what it has not read yet to the run's end.

    It ends early when the server closes (`closing`), when the run waits for a person, and with
    `longthread.interrupted` when the run's process is gone.
    """

    def __init__(self, hub: Hub, run: Run, *, read: Position, closing: asyncio.Event) -> None:
        self._hub = hub
        self._run = run
        self._read = read
        self._closing = closing

    async def __aiter__(self) -> AsyncIterator[str]:
        yield f"retry: {RETRY_MS}\n\n"
        encoder = Encoder()
        ended = False
        # The last events of runs that the closing server stopped are still read.
        with self._hub.watch(self._run.thread_id, self._run.id, goes_on=lambda: not self._closing.is_set()) as watch:
            while (events := await watch.read(patience=HEARTBEAT_SECONDS)) != []:
                if events is None:
                    yield ": beat\n\n"
                    continue
                # Events that the client has read are encoded too, unsent: the encoder must know what is open.
                fresh = [text for event in events for place, text in frames_of(encoder, event) if place > self._read]
                if fresh:
                    yield "".join(fresh)
                ended = watch.halts
        if not ended and not self._closing.is_set():
            yield frame(CustomEvent(name=INTERRUPTED, value={}))
