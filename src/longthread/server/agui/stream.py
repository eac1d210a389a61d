"""A client's run as AG-UI's event stream, from its beginning each time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from ag_ui import core as agui

from longthread.context.forks import whole_branch
from longthread.model.entry import Entry
from longthread.model.run import Event, Run
from longthread.runs.streams.hub import Hub
from longthread.server.agui.messages import messages_of
from longthread.server.events import WITHDRAWN, Encoder
from longthread.server.stream import HEARTBEAT_SECONDS, frame, interrupted
from longthread.store import log, runs
from longthread.store.driver import Driver

_THINKING = ("REASONING_",)
_ENDS = (agui.RunFinishedEvent, agui.RunErrorEvent)


@dataclass(frozen=True, slots=True)
class ClientRun:
    """A run under the id that its client gave. It is `run` from event `start` on: a run that was decided about goes on
    as another one of the client's."""

    id: str
    run: Run
    start: int


class AgUiStream:
    """One client's stream of a run, to its end or until it waits for a person.

    A client that comes again (`again`) gets the conversation up to the run first, and then the run from its beginning:
    the protocol has no positions, and what the client holds of the run is replaced.
    """

    def __init__(
        self, store: Driver, hub: Hub, client_run: ClientRun, *, user: str, again: bool, closing: asyncio.Event
    ) -> None:
        self._store = store
        self._hub = hub
        self._client_run = client_run
        self._user = user
        self._again = again
        self._closing = closing
        self._withdrawn = False
        self._replayed = 0

    async def __aiter__(self) -> AsyncIterator[str]:
        encoder, ended = Encoder(), False
        if self._again:
            yield "".join([frame(_json(each)) for each in await self._beginning()])
        run, goes_on = self._client_run.run, lambda: not self._closing.is_set()
        with self._hub.watch(run.thread_id, run.id, goes_on=goes_on) as watch:
            while (events := await watch.read(patience=HEARTBEAT_SECONDS)) != []:
                if events is None:
                    yield ": beat\n\n"
                    continue
                for event in events:
                    if self._is_anothers(event):
                        return
                    if text := "".join([frame(data) async for data in self._told(encoder, event)]):
                        yield text
                ended = watch.halts
        if not ended and not self._closing.is_set():
            yield frame(interrupted())

    async def _told(self, encoder: Encoder, event: Event) -> AsyncIterator[str]:
        """The events of an event, as JSON."""
        piece = encoder.more_text(event)
        if piece is None:
            async for each in self._shown(event, encoder.encode(event)):
                yield _json(each)
        elif self._again or event.seq >= self._client_run.start:
            yield piece

    def _is_anothers(self, event: Event) -> bool:
        """Whether the run goes on as another one of the client's."""
        request = event.data.get("request") if event.type == "decided" else None
        return event.seq > self._client_run.start and request not in {None, self._client_run.id}

    async def _beginning(self) -> list[agui.BaseEvent]:
        """The run's start, and the conversation up to it with what the run has thought until now."""
        run = self._client_run.run
        async with self._store.reading() as tx:
            events = await runs.events_after(tx, run.thread_id, run.id, 0)
            thread = await log.find_thread(tx, run.thread_id, user_id=self._user)
            branch = await whole_branch(tx, thread)
            own = [entry.seq for entry in branch if entry.metadata.get("run") == run.id]
            behind = [entry.parent_seq for entry in branch if entry.run_id == run.id]  # a question answered again
            asked = next(iter([*own, *behind]), run.question_seq or 0)
            if all(entry.seq != asked for entry in branch):
                branch = await whole_branch(tx, thread, tip=asked)
        self._replayed = events[-1].seq if events else 0
        before = messages_of([entry for entry in branch if entry.seq <= asked])
        thought = [
            agui.ReasoningMessage(id=each.message_id, content=each.delta)
            for each in _encoded(events)
            if isinstance(each, agui.ReasoningMessageContentEvent)
        ]
        return [self._run_started(), agui.MessagesSnapshotEvent(messages=[*before, *thought])]

    def _run_started(self) -> agui.RunStartedEvent:
        return agui.RunStartedEvent(
            thread_id=self._client_run.run.thread_id,
            run_id=self._client_run.id,
            protocol_version=agui.PROTOCOL_VERSION,
        )

    async def _shown(self, event: Event, made: Iterable[agui.BaseEvent]) -> AsyncIterator[agui.BaseEvent]:
        """What the client is told of an event."""
        start = self._client_run.start
        if event.seq < start and not self._again:
            return
        for each in made:
            if isinstance(each, agui.RunStartedEvent):
                if event.seq <= start and self._again:
                    continue
                each.run_id, each.parent_run_id = self._client_run.id, None
            elif isinstance(each, _ENDS):
                if event.seq < start:
                    continue
                if self._withdrawn:
                    yield await self._conversation()
                if isinstance(each, agui.RunFinishedEvent):
                    each.run_id = self._client_run.id
            elif each.type.startswith(_THINKING) and event.seq <= self._replayed:
                continue  # it is among the messages already
            elif isinstance(each, agui.CustomEvent) and each.name == WITHDRAWN:
                self._withdrawn = True
            yield each

    async def _conversation(self) -> agui.MessagesSnapshotEvent:
        """All messages: without the texts that were withdrawn, which a client would take for answers."""
        self._withdrawn = False
        async with self._store.reading() as tx:
            thread = await log.find_thread(tx, self._client_run.run.thread_id, user_id=self._user)
            branch: list[Entry] = await whole_branch(tx, thread)
        return agui.MessagesSnapshotEvent(messages=messages_of(branch))


def _json(event: agui.BaseEvent) -> str:
    return event.model_dump_json(by_alias=True)


def _encoded(events: Iterable[Event]) -> list[agui.BaseEvent]:
    encoder = Encoder()
    return [each for event in events for each in encoder.encode(event)]
