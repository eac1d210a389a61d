"""AG-UI's endpoint: a run is begun, decided about or watched with one request."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

from ag_ui import core as agui
from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse
from pydantic import Field, ValidationError

from longthread.context.forks import ClientBranch, Told
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
from longthread.model.run import Protocol
from longthread.server.agui.messages import told_of
from longthread.server.agui.stream import AgUiStream, ClientRun
from longthread.server.fields import Name
from longthread.server.openapi import AGUI_STREAM, problems
from longthread.server.paths import PathSegment
from longthread.server.requests import EVENT_STREAM, NO_STORE
from longthread.server.rights import CallerRights
from longthread.server.routes.chat import BEGINS, Options, named
from longthread.server.state import Caller, Rights, Served, ServedDep
from longthread.server.stream import frame
from longthread.store import log, runs
from longthread.store.driver import Transaction

router = APIRouter(prefix="/ag-ui", tags=["ag-ui"])

_SPACE = uuid.UUID("5c1f6f2e-6f0e-5a52-9b7e-2f2d6a0f8c11")
"""The namespace of the ids that follow from those of clients' runs."""
_MAY_BE_WRONG = (*BEGINS, ArgumentsInvalid, NothingAsked, NothingToResume, NotPending, NotSupported)


class RunInput(agui.RunAgentInput):
    """AG-UI's input of a run. `forwardedProps` may hold the run's `source`, `model`, `max_steps` and `protocol`."""

    thread_id: Annotated[Name, Field(max_length=1000)]
    run_id: Annotated[Name, Field(max_length=1000)]


class Forwarded(Options):
    """The options of a run among the forwarded values."""

    protocol: Protocol = "auto"


@router.post("/{agent}", response_class=StreamingResponse, responses=problems(*_MAY_BE_WRONG, body=True) | AGUI_STREAM)
async def run_agent(served: ServedDep, user: Caller, rights: Rights, agent: PathSegment, body: RunInput) -> Response:
    """Run an agent, and send its events. The same `runId` never runs twice: it watches that run again."""
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
            return await _found(tx, body)
    return None


async def _found(tx: Transaction, body: RunInput) -> ClientRun | None:
    thread, entry_id = body.thread_id, _entry_id(body.run_id)
    asked = (await log.find_entries(tx, thread, [entry_id])).get(entry_id)
    ours = str(asked.metadata.get("run")) if asked is not None else body.run_id
    if run := await runs.find_run(tx, thread, ours):
        return ClientRun(body.run_id, run, 1)
    last = await runs.last_run(tx, thread)
    for event in await runs.events_of_type(tx, thread, last.id, "decided") if last else ():
        if last is not None and event.data.get("request") == body.run_id:
            return ClientRun(body.run_id, last, event.seq)
    return None


async def _begin(served: Served, user: str, rights: CallerRights, agent: str, body: RunInput) -> str | None:
    """Begin the run that the input asks for. Returns a whole stream where none is needed."""
    if body.tools:
        raise NotSupported(what="Tools of the client", reason="agents call their own tools alone. Leave out `tools`.")
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
    with named(model):
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
    with named(model):
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
            return _cancelled(body)
        place = ClientBranch(_entry_id(body.run_id))
        await served.analyst.runs.resume(
            thread, user_id=user, model=model, max_steps=options.max_steps, source=source, place=place
        )
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


def _cancelled(body: RunInput) -> str:
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
