"""Runs: started, resumed and watched; and the results of their queries, page by page and whole as files."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from typing import Annotated, Any, BinaryIO, overload

from fastapi import APIRouter, Header, Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from longthread.builtin.chart import chart_of
from longthread.errors import (
    AgentOff,
    AgentOfThread,
    BudgetSpent,
    DefinitionNotFound,
    EntryNotFound,
    InvalidInput,
    KeyReused,
    ModelNotAllowed,
    ModelNotUsable,
    ModelUnavailable,
    NothingToResume,
    PriceMissing,
    ProjectNotFound,
    QuestionNotFound,
    QuestionTooLong,
    QueueFull,
    ResultTooLong,
    RunInProgress,
    RunNotFound,
    SourceError,
    SourceMissing,
    ThreadConflict,
    ThreadNotFound,
    ToolInvalid,
)
from longthread.model.run import HALTS, Protocol, Run, RunAsker
from longthread.runs.services.results import FileRequest, PageRequest
from longthread.runs.shared import RunHandle
from longthread.server.answers import ResultRows, StepView
from longthread.server.conversation_answers import Accepted, Queued
from longthread.server.fields import WHOLE, PathSegment, PlainText, Words, content_disposition
from longthread.server.history import events_path, queued_path, step_json
from longthread.server.openapi import STREAM, problems
from longthread.server.page import AskedLanguage
from longthread.server.requests import EVENT_STREAM, NO_STORE
from longthread.server.state import (
    AskerDep,
    Caller,
    CallerRights,
    Granted,
    PrincipalDep,
    Rights,
    Served,
    ServedDep,
    acting_user,
    expect_client_id,
)
from longthread.server.stream import PATTERN, Position, RunStream
from longthread.store import log, run_events, runs
from longthread.store.wait_list import QuestionKey, QueuedQuestion, WhenBusy
from longthread.tools.analysis.column_format import formats_of_json
from longthread.tools.analysis.export import TableFormat

router = APIRouter(prefix="/api", tags=["chat"])

IdempotencyKey = Annotated[str | None, Header(min_length=1, max_length=255)]
StepIndex = Annotated[int, Path(ge=0, lt=2**62)]
BEGINS = (
    AgentOff,
    AgentOfThread,
    BudgetSpent,
    DefinitionNotFound,
    ModelNotAllowed,
    ModelUnavailable,
    PriceMissing,
    RunInProgress,
    SourceError,
    SourceMissing,
    ThreadConflict,
    ThreadNotFound,
    ToolInvalid,
)
"""What may be wrong when a run begins."""
ALL_READ: dict[int | str, dict[str, Any]] = {204: {"description": "All was read, and the run has ended or waits"}}


class Options(BaseModel):
    """Options of a run; omitted ones are the thread's or the server's."""

    model_config = ConfigDict(extra="forbid")

    source: PlainText | None = Field(default=None, min_length=1, max_length=4096)
    model: PlainText | None = Field(default=None, min_length=1, max_length=200)
    max_steps: Annotated[int, Field(ge=1, le=1000), WHOLE] | None = None


class QuestionBody(Options):
    """A question. Without a `thread_id` it begins a conversation; with one it always sees what was said there.

    `continue_conversation` (document 001): whether it goes on with the conversation's unfinished run. By default its
    wording says so, such as "continue" or "继续". `project`: where a new conversation begins.
    """

    question: Words
    thread_id: PlainText | None = Field(default=None, min_length=1, max_length=1000)
    protocol: Protocol = "auto"
    agent: PlainText | None = Field(default=None, min_length=1, max_length=100)
    when_busy: WhenBusy = "reject"
    continue_conversation: bool | None = None
    project: PlainText | None = Field(default=None, min_length=1, max_length=100)


@router.post(
    "/chat",
    status_code=202,
    responses=problems(*BEGINS, KeyReused, ProjectNotFound, QuestionNotFound, QuestionTooLong, QueueFull, body=True),
)
async def ask(
    served: ServedDep,
    principal: PrincipalDep,
    asker: AskerDep,
    rights: Rights,
    body: QuestionBody,
    idempotency_key: IdempotencyKey = None,
) -> Accepted | Queued:
    """Start a run, or queue the question: `when_busy` says what happens while the conversation's run is under way.
    When this answers, the question is stored. Sent again with its `Idempotency-Key`, it is not asked again. An
    unknown `thread_id` starts a conversation with that id, and a conversation stays with its agent. Without a
    `source` it asks the server's. Where the run cannot begin yet, the answer has `queued_id` and `position` instead
    of `run_id`."""
    user = await acting_user(served, principal, body.thread_id, body.project)
    key = question_key(idempotency_key, body, whose=principal.user)
    return await once(served, user, key, lambda: _begin(served, user, asker, rights, body, key))


@router.post(
    "/conversations/{thread_id}/resume", status_code=202, responses=problems(*BEGINS, NothingToResume, body=True)
)
async def resume(
    served: ServedDep,
    user: Caller,
    asker: AskerDep,
    rights: Rights,
    thread_id: PathSegment,
    body: Options | None = None,
) -> Accepted:
    """Resume the conversation's unfinished run; an interrupted one keeps its id."""
    body = body or Options()
    source, model = rights.source(body.source), rights.model(body.model)
    with blame_named_model(model):
        handle = await served.analyst.runs.resume(
            thread_id, user_id=user, model=model, max_steps=body.max_steps, source=source, asker=asker
        )
    return _describe_accepted(handle.run)


@router.get(
    "/conversations/{thread_id}/runs/{run_id}/events",
    responses=problems(ThreadNotFound, RunNotFound, reads=True) | STREAM | ALL_READ,
    response_class=StreamingResponse,
)
async def events(
    served: ServedDep,
    user: Caller,
    thread_id: PathSegment,
    run_id: PathSegment,
    after: Annotated[str, Query(pattern=PATTERN)] = "",
    last_event_id: Annotated[str, Header(pattern=PATTERN)] = "",
    lang: AskedLanguage = "en",
) -> Response:
    """The run's events as AG-UI 1.0 over server-sent events, from the first or after the `id` last read.

    204 when all was read and the run has ended or waits for a person: a browser then stops reconnecting.
    """
    read = Position.parse(last_event_id or after)
    async with served.analyst.store.reading() as tx:
        run = await runs.run_of_user(tx, thread_id, run_id, user_id=user)
    if run.status in HALTS:
        async with served.analyst.store.reading() as tx:
            behind = await run_events.events_after(tx, thread_id, run_id, read.seq)
        # Decisions about some of the waiting calls are sent with the others.
        if all(event.type == "decided" for event in behind):
            return Response(status_code=204)
    stream = RunStream(served.analyst.hub, served.encoders[lang], run, read=read, closing=served.closing)
    return StreamingResponse(aiter(stream), media_type=EVENT_STREAM, headers=NO_STORE)


@router.get("/conversations/{thread_id}/steps/{index}", responses=problems(ThreadNotFound, EntryNotFound, reads=True))
async def step(served: ServedDep, user: Caller, thread_id: PathSegment, index: StepIndex) -> StepView:
    """One step with its whole observation. A call of the model is a step too, and has none. A history has the first
    100 rows, and `cut` says so."""
    async with served.analyst.store.reading() as tx:
        await log.find_thread(tx, thread_id, user_id=user)
        found = await runs.steps_between(tx, thread_id, index, index + 1)
    if not found:
        raise EntryNotFound(thread=thread_id, entry=f"step {index}")
    return step_json(found[0], whole=True)


@router.get(
    "/conversations/{thread_id}/steps/{index}/chart", responses=problems(ThreadNotFound, EntryNotFound, reads=True)
)
async def chart(served: ServedDep, user: Caller, thread_id: PathSegment, index: StepIndex) -> dict[str, Any]:
    """The chart that a step made, as a Vega-Lite specification with its rows. 404 without one."""
    async with served.analyst.store.reading() as tx:
        await log.find_thread(tx, thread_id, user_id=user)
        found = await runs.steps_between(tx, thread_id, index, index + 1)
        made = await chart_of(tx, found[0]) if found else None
    if made is None:
        raise EntryNotFound(thread=thread_id, entry=f"with a chart at step {index}")
    return made


def question_key(sent: str | None, body: BaseModel, *place: str, whose: str) -> QuestionKey | None:
    """A client's key, with a hash of what it asks under it, and where; `whose` is the user who asks."""
    asked = "\0".join([*place, body.model_dump_json()])
    return QuestionKey(sent, sha256(asked.encode()).hexdigest(), whose) if sent is not None else None


async def once(
    served: Served, user: str, key: QuestionKey | None, begin: Callable[[], Awaitable[RunHandle | QueuedQuestion]]
) -> Accepted | Queued:
    """Begin a run or queue a question, or find what was begun or queued under the request's key."""

    async def find_asked() -> Run | QueuedQuestion | None:
        return await served.analyst.runs.find_asked(key, user_id=user) if key is not None else None

    if (known := await find_asked()) is not None:
        return _describe_accepted(known)
    try:
        begun = await begin()
    except RunInProgress:
        # The same request may have come twice at once.
        if (known := await find_asked()) is not None:
            return _describe_accepted(known)
        raise
    return _describe_accepted(begun.run if isinstance(begun, RunHandle) else begun)


async def _begin(
    served: Served,
    user: str,
    asker: RunAsker | None,
    rights: CallerRights,
    body: QuestionBody,
    key: QuestionKey | None,
) -> RunHandle | QueuedQuestion:
    await expect_client_id(served, user, body.thread_id)
    source, model = rights.source(body.source), rights.model(body.model)
    with blame_named_model(model):
        return await served.analyst.runs.submit(
            body.question,
            when_busy=body.when_busy,
            thread_id=body.thread_id,
            source=source,
            model=model,
            protocol=body.protocol,
            max_steps=body.max_steps,
            agent=body.agent,
            user_id=user,
            key=key,
            continues=body.continue_conversation,
            asker=asker,
        )


@contextmanager
def blame_named_model(model: str | None) -> Iterator[None]:
    """Raise ModelNotUsable where the caller named the model that is unavailable."""
    try:
        yield
    except ModelUnavailable as error:
        if model is None or error.model != model:
            raise
        raise ModelNotUsable(model=error.model, reason=error.reason) from error


@overload
def _describe_accepted(asked: Run) -> Accepted: ...


@overload
def _describe_accepted(asked: Run | QueuedQuestion) -> Accepted | Queued: ...


def _describe_accepted(asked: Run | QueuedQuestion) -> Accepted | Queued:
    if isinstance(asked, Run):
        return {"thread_id": asked.thread_id, "run_id": asked.id, "events": events_path(asked)}
    path = queued_path(asked.thread_id, asked.id)
    return {"thread_id": asked.thread_id, "queued_id": asked.id, "position": asked.position, "events": path}


results_router = APIRouter(prefix="/api", tags=["results"])

_MOST_ROWS = 1_000
"""Rows of a page."""
_CHUNK = 2**16
_MOST_FORMATS = 20_000
"""Characters of the formats of columns."""
TYPES = {
    TableFormat.CSV: "text/csv",
    TableFormat.PARQUET: "application/vnd.apache.parquet",
    TableFormat.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_MAY_BE_WRONG = (EntryNotFound, RunNotFound, SourceError, SourceMissing, ThreadNotFound)
FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file. `Longthread-Rerun` says whether the query was run again",
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in TYPES.values()},
        "headers": {"Longthread-Rerun": {"schema": {"type": "string", "enum": ["true", "false"]}}},
    }
}


@results_router.get("/conversations/{thread_id}/steps/{index}/result", responses=problems(*_MAY_BE_WRONG, reads=True))
async def result(
    served: ServedDep,
    user: Caller,
    granted: Granted,
    thread_id: PathSegment,
    index: StepIndex,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST_ROWS)] = 100,
    sort: PlainText | None = None,
    descending: bool = False,
) -> ResultRows:
    """Rows of a step's result, sorted by the column `sort` if given, NULL last. What the step does not keep is
    asked of the database again. A page has up to 1,000 rows."""
    wanted = PageRequest(offset, limit, sort, descending)
    page = await served.analyst.results.page(thread_id, index, wanted, user_id=user, rights=granted)
    label = ((page.step.observation or {}).get("data") or {}).get("query")
    return {
        "thread_id": thread_id,
        "step": index,
        "query": str(label) if label else None,
        "sql": page.sql,
        "columns": page.result.columns,
        "rows": page.result.rows,
        "offset": offset,
        "total": page.total,
        "cut_cells": page.result.cut_cells,
        "whole": page.whole,
        "rerun": page.rerun,
    }


@results_router.get(
    "/conversations/{thread_id}/steps/{index}/result/file",
    responses=problems(*_MAY_BE_WRONG, InvalidInput, ResultTooLong, reads=True) | FILES,
    response_class=StreamingResponse,
)
async def file(
    served: ServedDep,
    user: Caller,
    granted: Granted,
    thread_id: PathSegment,
    index: StepIndex,
    format_: Annotated[TableFormat, Query(alias="format")] = TableFormat.CSV,
    formats: Annotated[str, Query(max_length=_MOST_FORMATS)] = "{}",
    shown: bool = False,
) -> Response:
    """All rows of a step's result, as a file. `formats` is a JSON object with the formats of columns. A sheet has
    them, and a CSV file whose cells are `shown` as on the page. Else the source tells them, or they are guessed.
    The header `Longthread-Rerun` says whether the query was run again."""
    wanted = FileRequest(format_, formats_of_json(formats), shown)
    with ExitStack() as stack:
        made = stack.enter_context(tempfile.TemporaryFile())
        kept = await served.analyst.results.write(thread_id, index, made, wanted, user_id=user, rights=granted)
        made.seek(0)
        stack.pop_all()  # the answer closes it
    label = str(kept.data.get("query") or "")
    headers = {
        **NO_STORE,
        "Content-Disposition": content_disposition(kept.run.question, format_, unnamed=f"result-{index}", label=label),
        "Longthread-Rerun": str(kept.runs_again).lower(),
    }
    return StreamingResponse(chunks(made), media_type=TYPES[format_], headers=headers)


async def chunks(made: BinaryIO) -> AsyncIterator[bytes]:
    with made:
        while chunk := await asyncio.to_thread(made.read, _CHUNK):
            yield chunk
