"""What clients watch: a run's events, and the changes of a user's conversations and waiting approvals.

Both are server-sent events, which a client can resume anywhere. An event is encoded once for all clients that have
read as far, in a language, and a list is read once for all of its user's clients.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self
from weakref import WeakValueDictionary

from ag_ui.core import CustomEvent

from longthread.errors import InvalidInput, ThreadNotFound
from longthread.model.ids import new_id
from longthread.model.run import Event, Run
from longthread.runs.hub import Hub, RunPlace, RunWatch
from longthread.server.events import INTERRUPTED, Encoder
from longthread.server.page import PageLanguage
from longthread.store import log, wait_list
from longthread.store.driver import Driver

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


def encode_event(encoder: Encoder, event: Event) -> Encoded:
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

    def __init__(self, language: PageLanguage = "en") -> None:
        self.at = 0
        self.readers = 0
        self._encoder = Encoder(language)
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

    def encode(self, event: Event) -> Encoded | None:
        """Encode the next event; an earlier one comes as it was encoded, or is None if it is no longer kept."""
        if event.seq <= self.at:
            return self._kept.get(event.seq)
        made, self.at = encode_event(self._encoder, event), event.seq
        if self.readers > 1:
            self._kept[event.seq] = made
            if len(self._kept) > KEPT_EVENTS:
                del self._kept[next(iter(self._kept))]
        return made


class Encoders:
    """The shared encoders of the runs that are read in a language."""

    def __init__(self, language: PageLanguage = "en") -> None:
        self.language = language
        self._encoders: WeakValueDictionary[RunPlace, SharedEncoder] = WeakValueDictionary()

    def of(self, place: RunPlace) -> SharedEncoder:
        found = self._encoders.get(place)
        if found is None:
            found = self._encoders[place] = SharedEncoder(self.language)
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
        self._language = encoders.language
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
        self._own = Encoder(self._language)

    def _end(self) -> None:
        self._stack.close()
        if self._own is None:
            self._shared.readers -= 1

    def _fresh(self, events: list[Event]) -> Encoded | None:
        """Return what the client has not read; None if the shared encoder no longer keeps it."""
        fresh: Encoded = []
        for event in events:
            made = self._encode_next(event)
            if made is None:
                return None
            fresh += [each for each in made if each[0] > self.position]
        if fresh:
            self.position = fresh[-1][0]
        return fresh

    def _encode_next(self, event: Event) -> Encoded | None:
        if self._own is None:
            return self._shared.encode(event)
        made = encode_event(self._own, event)
        if self._shared.takes(self._own, event.seq):
            self._own = None
        return made


def frame(data: str, place: object = None) -> str:
    """One server-sent event. Without a place it has no id, and is not resumed from."""
    return f"id: {place}\ndata: {data}\n\n" if place else f"data: {data}\n\n"


def encode_interrupted() -> str:
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
                yield frame(encode_interrupted())


LOOK_SECONDS = 3.0
"""How often a list is read again while clients wait, where other processes signal no changes."""
LOOK_ANYWAY_SECONDS = 30.0
"""The same where they do: other programs that write the store signal nothing."""
TOGETHER_SECONDS = 0.2
"""How long changes wait for others: a list is read this often at most."""
KEPT_CHANGES = 256
"""Changes that a client may miss while it is away. One that has missed more gets the whole list again."""

ReadList = Callable[[], Awaitable[Mapping[str, Any]]]
"""Reads the first page of a user's list, as `GET /api/conversations` answers."""


class ListChange(NamedTuple):
    """A server-sent event's name and JSON, and the number after it; None: another one belongs to it."""

    number: int | None
    name: str
    data: str


class UserList:
    """The changes of the list that one user's clients get.

    A position is `mark.number`: a client that comes back to another process, or too late, has another mark or an old
    number, and gets the whole list.
    """

    def __init__(self, store: Driver, hub: Hub, user: str, read: ReadList) -> None:
        self.mark = new_id()[-8:]
        self._store = store
        self._hub = hub
        self._user = user
        self._read = read
        self._number = 0
        self._kept: deque[ListChange] = deque(maxlen=KEPT_CHANGES)
        self._items: dict[str, str] = {}
        self._waiting = ""
        self._counted: int | None = None
        self._count = hub.list_changes(user)
        self._reading = asyncio.Lock()

    async def after(self, position: str) -> Sequence[ListChange]:
        """Return the changes after a client's position, or the whole list.

        Raises:
            StoreError: the list cannot be read.
        """
        if self._counted != self._count.count:
            await self._look()
        mark, _, number = position.partition(".")
        if mark == self.mark and number.isdecimal() and self._number - len(self._kept) <= int(number) <= self._number:
            return [change for change in self._kept if (change.number or 0) > int(number)]
        listed = f'{{"conversations":[{",".join(self._items.values())}]}}'
        return [ListChange(None, "conversations", listed), ListChange(self._number, "approvals", self._waiting)]

    async def wait(self) -> None:
        """Wait until something may have changed, and a little more: changes come together."""
        if self._counted == self._count.count:
            try:
                async with asyncio.timeout(LOOK_ANYWAY_SECONDS if self._hub.hears else LOOK_SECONDS):
                    await self._count.bell.wait()
            except TimeoutError:
                self._counted = None
                return
        await asyncio.sleep(TOGETHER_SECONDS)

    async def _look(self) -> None:
        """Read the list once for all clients, and note what has changed."""
        async with self._reading:
            count = self._count.count
            if self._counted == count:
                return  # another client has read it
            page = await self._read()
            items = {item["id"]: _dump(item) for item in page["conversations"]}
            left = {each: await self._why_left(each) for each in self._items if each not in items}
            waiting = await self._calls()
            for each, item in reversed(items.items()):
                if self._items.get(each) != item:
                    self._note("conversation", item)
            for each, why in left.items():
                if why is not None:
                    self._note(why, _dump({"id": each}))
            if waiting != self._waiting:
                self._note("approvals", waiting)
            self._items, self._waiting, self._counted = items, waiting, count

    def _note(self, name: str, data: str) -> None:
        self._number += 1
        self._kept.append(ListChange(self._number, name, data))

    async def _why_left(self, thread_id: str) -> Literal["archived", "deleted"] | None:
        """Why a thread left the page; None if it is just older than those on it."""
        try:
            async with self._store.reading() as tx:
                row = await log.find_row(tx, thread_id, user_id=self._user)
        except ThreadNotFound:
            return "deleted"
        return "archived" if row["archived_at"] else None

    async def _calls(self) -> str:
        async with self._store.reading() as tx:
            runs = await wait_list.waiting(tx, user_id=self._user)
            calls = [[call.request() for call in await wait_list.pending(tx, *run)] for run in runs]
        listed = [{"thread_id": run[0], "run_id": run[1], "calls": each} for run, each in zip(runs, calls, strict=True)]
        return _dump({"waiting": listed})


class UserLists:
    """The lists that clients watch, by user."""

    def __init__(self, store: Driver, hub: Hub) -> None:
        self._store = store
        self._hub = hub
        self._lists: WeakValueDictionary[str, UserList] = WeakValueDictionary()

    def of(self, user: str, read: ReadList) -> UserList:
        found = self._lists.get(user)
        if found is None:
            found = self._lists[user] = UserList(self._store, self._hub, user, read)
        return found


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
