"""AG-UI's endpoint: a run is begun, decided about or watched with one request.

Entries of the log are AG-UI's messages, and a run is its event stream, from its beginning each time.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

from ag_ui import core as agui
from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse
from pydantic import Field, ValidationError

from longthread.context.forks import ClientBranch, Told, is_shown, whole_branch
from longthread.errors import (
    ArgumentsInvalid,
    InvalidInput,
    LongthreadError,
    NothingAsked,
    NothingToResume,
    NotPending,
    NotSupported,
    RunWaiting,
    ThreadNotFound,
)
from longthread.model.entry import Entry
from longthread.model.fold import observation_of
from longthread.model.run import Event, Protocol, Run
from longthread.runs.hub import Hub
from longthread.runs.rights import asker_of
from longthread.server.events import WITHDRAWN, Encoder
from longthread.server.fields import Name, PathSegment
from longthread.server.openapi import AGUI_STREAM, problems
from longthread.server.requests import EVENT_STREAM, NO_STORE
from longthread.server.routes.chat import BEGINS, Options, blame_named_model
from longthread.server.state import CallerRights, Rights, Served, ServedDep, acting_user, expect_client_id
from longthread.server.stream import HEARTBEAT_SECONDS, encode_interrupted, frame
from longthread.store import log, run_events, runs
from longthread.store.driver import Driver, Transaction


def told_of(messages: Sequence[agui.Message]) -> list[Told]:
    """The user's and the assistant's messages with text, in order. Calls, results, reasoning, activities, and system
    messages are not compared: ours stay. Raises NotSupported for a picture, a sound, a video or a document."""
    told: list[Told] = []
    for message in messages:
        if isinstance(message, agui.UserMessage):
            told.append(Told(message.id, "user", _text(message.content)))
        elif isinstance(message, agui.AssistantMessage) and message.content:
            told.append(Told(message.id, "assistant", _text(message.content)))
    return told


def messages_of(branch: Sequence[Entry]) -> list[agui.Message]:
    """Return a branch as messages, under the ids that their clients gave or received."""
    made: list[agui.Message] = []
    calls: set[str] = set()
    for entry in branch:
        own_id = log.sent_id(entry)
        if is_shown(entry):
            role = agui.UserMessage if entry.role == "user" else agui.AssistantMessage
            made.append(role(id=own_id, content=entry.shown_text))
        elif entry.role == "assistant" and entry.tool_calls and entry.kind is None:
            made += [agui.ReasoningMessage(id=f"{own_id}.thought", content=entry.text)] if entry.text else []
            made.append(agui.AssistantMessage(id=own_id, tool_calls=_calls(entry)))
            calls |= {call.id for call in entry.tool_calls}
        elif entry.role == "tool" and entry.tool_call_id in calls:
            call = str(entry.tool_call_id)
            made.append(agui.ToolMessage(id=f"{call}.result", tool_call_id=call, content=_result(entry)))
    return made


def _text(content: str | Sequence[agui.ContentPart]) -> str:
    if isinstance(content, str):
        return content
    for part in content:
        if not isinstance(part, agui.TextPart):
            raise NotSupported(what=f"A message's part of type {part.type}", reason="agents read text alone.")
    return "\n".join(part.text for part in content if isinstance(part, agui.TextPart))


def _calls(entry: Entry) -> list[agui.ToolCall]:
    return [
        agui.ToolCall(
            id=call.id, type="function", function=agui.FunctionCall(name=call.name, arguments=_dump(call.args))
        )
        for call in entry.tool_calls
    ]


def _result(entry: Entry) -> str:
    return _dump(observation_of(entry.text))


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


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
                    if text := "".join([frame(data) async for data in self._render_event(encoder, event)]):
                        yield text
                ended = watch.halts
        if not ended and not self._closing.is_set():
            yield frame(encode_interrupted())

    async def _render_event(self, encoder: Encoder, event: Event) -> AsyncIterator[str]:
        """The events of an event, as JSON."""
        piece = encoder.more_text(event)
        if piece is None:
            async for each in self._show_event(event, encoder.encode(event)):
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
            events = await run_events.events_after(tx, run.thread_id, run.id, 0)
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
            for each in _encode_events(events)
            if isinstance(each, agui.ReasoningMessageContentEvent)
        ]
        return [self._run_started(), agui.MessagesSnapshotEvent(messages=[*before, *thought])]

    def _run_started(self) -> agui.RunStartedEvent:
        return agui.RunStartedEvent(
            thread_id=self._client_run.run.thread_id,
            run_id=self._client_run.id,
            protocol_version=agui.PROTOCOL_VERSION,
        )

    async def _show_event(self, event: Event, made: Iterable[agui.BaseEvent]) -> AsyncIterator[agui.BaseEvent]:
        """Yield what the client gets of an event."""
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


def _encode_events(events: Iterable[Event]) -> list[agui.BaseEvent]:
    encoder = Encoder()
    return [each for event in events for each in encoder.encode(event)]


router = APIRouter(prefix="/ag-ui", tags=["ag-ui"])

_SPACE = uuid.UUID("5c1f6f2e-6f0e-5a52-9b7e-2f2d6a0f8c11")
"""The namespace of the ids that follow from those of clients' runs."""
_MAY_BE_WRONG = (*BEGINS, ArgumentsInvalid, NothingAsked, NothingToResume, NotPending, NotSupported)


class RunInput(agui.RunAgentInput):
    """AG-UI's input of a run. `forwardedProps` may hold the run's `source`, `model`, `max_steps` and `protocol`, and
    the `project` where a new conversation begins."""

    thread_id: Annotated[Name, Field(max_length=1000)]
    run_id: Annotated[Name, Field(max_length=1000)]


class Forwarded(Options):
    """The options of a run among the forwarded values."""

    protocol: Protocol = "auto"
    project: Annotated[str, Field(max_length=100)] | None = None


@router.post("/{agent}", response_class=StreamingResponse, responses=problems(*_MAY_BE_WRONG, body=True) | AGUI_STREAM)
async def run_agent(served: ServedDep, rights: Rights, agent: PathSegment, body: RunInput) -> Response:
    """Run an agent, and send its events. The same `runId` never runs twice: it watches that run again."""
    user = await acting_user(served, rights.principal, body.thread_id, _options(body).project)
    found = await _find(served, user, body)
    again = found is not None
    if found is None:
        try:
            cancelled = await _begin(served, user, rights, agent, body)
        except LongthreadError:
            # The same request may have come twice at once.
            found, again = await _find(served, user, body), True
            if found is None:
                raise
        else:
            if cancelled is not None:
                return StreamingResponse(iter([cancelled]), media_type=EVENT_STREAM, headers=NO_STORE)
            found = await _find(served, user, body)
            if found is None:
                raise ThreadNotFound(thread=body.thread_id)  # deleted since
    analyst = served.analyst
    stream = AgUiStream(analyst.store, analyst.hub, found, user=user, again=again, closing=served.closing)
    return StreamingResponse(aiter(stream), media_type=EVENT_STREAM, headers=NO_STORE)


async def _find(served: Served, user: str, body: RunInput) -> ClientRun | None:
    """The run that a client has begun or continued under this id; a run of ours is also found by our id."""
    async with served.analyst.store.reading() as tx:
        with suppress(ThreadNotFound):
            await log.find_thread(tx, body.thread_id, user_id=user)
            return await _find_client_run(tx, body)
    return None


async def _find_client_run(tx: Transaction, body: RunInput) -> ClientRun | None:
    thread, entry_id = body.thread_id, _entry_id(body.run_id)
    asked = (await log.find_entries(tx, thread, [entry_id])).get(entry_id)
    ours = str(asked.metadata.get("run")) if asked is not None else body.run_id
    if run := await runs.find_run(tx, thread, ours):
        return ClientRun(body.run_id, run, 1)
    last = await runs.last_run(tx, thread)
    for event in await run_events.events_of_type(tx, thread, last.id, "decided") if last else ():
        if last is not None and event.data.get("request") == body.run_id:
            return ClientRun(body.run_id, last, event.seq)
    return None


async def _begin(served: Served, user: str, rights: CallerRights, agent: str, body: RunInput) -> str | None:
    """Begin the run that the input asks for. Returns a whole stream where none is needed."""
    if body.tools:
        raise NotSupported(what="Tools of the client", reason="agents call their own tools alone. Leave out `tools`.")
    await expect_client_id(served, user, body.thread_id)
    told = told_of(body.messages)
    asks = bool(body.messages) and isinstance(body.messages[-1], agui.UserMessage) and bool(told[-1].text.strip())
    if body.resume and not (asks and await _is_new(served, body, told[-1])):
        return await _resume(served, user, rights, body, body.resume)
    if any(entry.status == "resolved" for entry in body.resume or ()):
        raise NotSupported(what="A message beside an answer", reason="answer with `resume` first, and send it then.")
    if not asks:
        raise NothingAsked(thread=body.thread_id, run=body.run_id)
    await _ask(served, user, rights, agent, body, told)
    return None


async def _is_new(served: Served, body: RunInput, last: Told) -> bool:
    """Whether the client's last message is another than the question of the last run."""
    async with served.analyst.store.reading() as tx:
        run = await runs.last_run(tx, body.thread_id)
        seq = run.question_seq if run is not None else None
        asked = await log.entries_at(tx, body.thread_id, [seq]) if seq else {}
    return all(log.sent_id(entry) != last.id for entry in asked.values())


async def _ask(
    served: Served, user: str, rights: CallerRights, agent: str, body: RunInput, told: Sequence[Told]
) -> None:
    options = _options(body)
    source, model = rights.source(options.source), rights.model(options.model)
    with blame_named_model(model):
        await served.analyst.ask(
            told[-1].text,
            thread_id=body.thread_id,
            source=source,
            model=model,
            protocol=options.protocol,
            max_steps=options.max_steps,
            agent=agent,
            user_id=user,
            place=ClientBranch(_entry_id(body.run_id), told[-1].id, told[:-1]),
            asker=asker_of(rights.principal),
        )


async def _resume(
    served: Served, user: str, rights: CallerRights, body: RunInput, resume: Sequence[agui.ResumeEntry]
) -> str | None:
    """Decide about the calls that wait, or continue a run that was out of steps."""
    thread, options = body.thread_id, _options(body)
    source, model = rights.source(options.source), rights.model(options.model)
    waiting = [call.call_id for call in await served.analyst.approvals.pending(thread, user_id=user)]
    async with served.analyst.store.reading() as tx:
        last = await runs.last_run(tx, thread)
    with blame_named_model(model):
        if waiting and last is not None:
            answers = {entry.interrupt_id: _decision(entry) for entry in resume}
            if not answers.keys() >= set(waiting):
                raise RunWaiting(thread=thread, run=last.id)
            await served.analyst.approvals.decide(
                thread, answers, user_id=user, model=model, source=source, request=body.run_id
            )
            return None
        if last is None or last.status != "paused" or [entry.interrupt_id for entry in resume] != [last.id]:
            raise NotPending(thread=thread, call=resume[0].interrupt_id, hint="")
        if resume[0].status == "cancelled":
            return _encode_cancelled(body)
        place = ClientBranch(_entry_id(body.run_id))
        how: dict[str, Any] = {"max_steps": options.max_steps, "source": source, "place": place}
        await served.analyst.runs.resume(thread, user_id=user, model=model, asker=asker_of(rights.principal), **how)
    return None


def _decision(entry: agui.ResumeEntry) -> dict[str, Any]:
    """The answer to an interrupt as a decision. Raises InvalidInput."""
    if entry.status == "cancelled" or entry.payload is False:
        return {"type": "reject"}
    if entry.payload is True:
        return {"type": "approve"}
    if not isinstance(entry.payload, dict):
        raise InvalidInput(reason="The `payload` of an answer is a decision, as the interrupt's `responseSchema` says.")
    return entry.payload


def _encode_cancelled(body: RunInput) -> str:
    """The stream of a run that was not continued."""
    started = agui.RunStartedEvent(thread_id=body.thread_id, run_id=body.run_id, protocol_version=agui.PROTOCOL_VERSION)
    outcome = agui.RunFinishedCancelledOutcome()
    finished = agui.RunFinishedEvent(thread_id=body.thread_id, run_id=body.run_id, outcome=outcome)
    return "".join(frame(each.model_dump_json(by_alias=True)) for each in (started, finished))


def _options(body: RunInput) -> Forwarded:
    given = body.forwarded_props if isinstance(body.forwarded_props, dict) else {}
    try:
        return Forwarded.model_validate({name: given[name] for name in Forwarded.model_fields.keys() & given.keys()})
    except ValidationError as error:
        wrong = ", ".join(".".join(map(str, each["loc"])) for each in error.errors())
        raise InvalidInput(reason=f"`forwardedProps` has options of the wrong kind: {wrong}.") from error


def _entry_id(run_id: str) -> str:
    """The id of the question that a client's run answers."""
    return str(uuid.uuid5(_SPACE, run_id))
