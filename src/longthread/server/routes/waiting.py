"""What waits in a conversation: questions for their turn, and calls for a person's approval.

A queued question's stream has comments while it waits, then the events of its run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any, Literal

from ag_ui.core import CustomEvent
from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from longthread.errors import (
    ArgumentsInvalid,
    DefinitionNotFound,
    ModelUnavailable,
    NotPending,
    QuestionNotFound,
    RunInProgress,
    RunNotFound,
    SourceError,
    SourceMissing,
    ThreadConflict,
    ThreadNotFound,
    ToolInvalid,
)
from longthread.server.answers import ApprovalList, JsonObject
from longthread.server.conversation_answers import Accepted, QueuedList, QueuedState
from longthread.server.events import REMOVED
from longthread.server.fields import PathSegment
from longthread.server.history import decided_call, events_path, queued_path, queued_view, waiting_call
from longthread.server.openapi import STREAM, problems
from longthread.server.page import AskedLanguage, PageLanguage
from longthread.server.requests import EVENT_STREAM, NO_STORE
from longthread.server.routes.chat import ALL_READ
from longthread.server.routes.chat import events as run_events
from longthread.server.state import Caller, Served, ServedDep
from longthread.server.stream import HEARTBEAT_SECONDS, PATTERN, RETRY_MS, Position, RunStream, frame
from longthread.store import log, runs
from longthread.store import wait_list as approval_store
from longthread.store.wait_list import QueuedQuestion

LOOK_SECONDS = 1.0
"""How often a question is looked at, where other processes signal no changes."""


class QueuedStream:
    """One client's stream of a question, to the end of its run. It ends early when the question is removed, and when
    the server closes."""

    def __init__(
        self, served: Served, question: QueuedQuestion, *, user: str, read: Position, language: PageLanguage
    ) -> None:
        self._served = served
        self._encoders = served.encoders[language]
        self._question = question
        self._user = user
        self._read = read

    async def __aiter__(self) -> AsyncIterator[str]:
        served, thread_id, question_id = self._served, self._question.thread_id, self._question.id
        yield f"retry: {RETRY_MS}\n\n"
        changes = served.analyst.hub.question_changes(question_id)
        while not served.closing.is_set():
            bell = changes.bell  # what changes from here on rings it
            try:
                found = await served.analyst.queue.find(thread_id, question_id, user_id=self._user)
            except (QuestionNotFound, ThreadNotFound):
                yield frame(CustomEvent(name=REMOVED, value={"queued_id": question_id}).model_dump_json(by_alias=True))
                return
            if isinstance(found, str):
                async for part in self._run(found):
                    yield part
                return
            yield f": {found.position}\n\n"
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_SECONDS if served.analyst.hub.hears else LOOK_SECONDS):
                    await bell.wait()

    async def _run(self, run_id: str) -> AsyncIterator[str]:
        served = self._served
        async with served.analyst.store.reading() as tx:
            run = await runs.find_run(tx, self._question.thread_id, run_id)
        if run is not None:  # it may be deleted by now
            async for part in aiter(
                RunStream(served.analyst.hub, self._encoders, run, read=self._read, closing=served.closing)
            ):
                yield part


queue_router = APIRouter(prefix="/api", tags=["queue"])


# The API also has these routes by the name of threads.
@queue_router.get("/threads/{thread_id}/queue", include_in_schema=False)
@queue_router.get("/conversations/{thread_id}/queue", responses=problems(ThreadNotFound, reads=True))
async def waiting(served: ServedDep, user: Caller, thread_id: PathSegment) -> QueuedList:
    """The questions that wait in a conversation, the next one first."""
    found = await served.analyst.queue.of_thread(thread_id, user_id=user)
    return {"thread_id": thread_id, "queue": [queued_view(each) for each in found]}


@queue_router.get("/threads/{thread_id}/queue/{question_id}", include_in_schema=False)
@queue_router.get(
    "/conversations/{thread_id}/queue/{question_id}", responses=problems(ThreadNotFound, QuestionNotFound, reads=True)
)
async def queued(served: ServedDep, user: Caller, thread_id: PathSegment, question_id: PathSegment) -> QueuedState:
    """Where a queued question stands: it waits, or has become a run."""
    found = await served.analyst.queue.find(thread_id, question_id, user_id=user)
    return {
        "thread_id": thread_id,
        "queued_id": question_id,
        "position": found.position if isinstance(found, QueuedQuestion) else None,
        "run_id": found if isinstance(found, str) else None,
        "events": queued_path(thread_id, question_id),
    }


@queue_router.delete("/threads/{thread_id}/queue/{question_id}", status_code=204, include_in_schema=False)
@queue_router.delete(
    "/conversations/{thread_id}/queue/{question_id}",
    status_code=204,
    responses=problems(ThreadNotFound, QuestionNotFound),
)
async def remove(served: ServedDep, user: Caller, thread_id: PathSegment, question_id: PathSegment) -> Response:
    """Remove a question that waits: it is never asked. 404 when it does not wait any more."""
    await served.analyst.queue.remove(thread_id, question_id, user_id=user)
    return Response(status_code=204)


@queue_router.get(
    "/conversations/{thread_id}/queue/{question_id}/events",
    responses=problems(ThreadNotFound, QuestionNotFound, RunNotFound, reads=True) | STREAM | ALL_READ,
    response_class=StreamingResponse,
)
async def events(
    served: ServedDep,
    user: Caller,
    thread_id: PathSegment,
    question_id: PathSegment,
    after: Annotated[str, Query(pattern=PATTERN)] = "",
    last_event_id: Annotated[str, Header(pattern=PATTERN)] = "",
    lang: AskedLanguage = "en",
) -> Response:
    """Comments while the question waits, then the events of its run, as the run's own stream has them."""
    found = await served.analyst.queue.find(thread_id, question_id, user_id=user)
    if isinstance(found, str):
        return await run_events(served, user, thread_id, found, after, last_event_id, lang)
    stream = QueuedStream(served, found, user=user, read=Position.parse(last_event_id or after), language=lang)
    return StreamingResponse(aiter(stream), media_type=EVENT_STREAM, headers=NO_STORE)


approvals_router = APIRouter(prefix="/api", tags=["approvals"])

_DECIDES = (
    ArgumentsInvalid,
    DefinitionNotFound,
    ModelUnavailable,
    NotPending,
    RunInProgress,
    SourceError,
    SourceMissing,
    ThreadConflict,
    ThreadNotFound,
    ToolInvalid,
)
"""What may be wrong when somebody decides."""
_PART: dict[int | str, dict[str, Any]] = {200: {"model": ApprovalList, "description": "Other calls still wait"}}


class ApproveDecision(BaseModel):
    """The call is made."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["approve"]


class EditedAction(BaseModel):
    """The tool of the call, which an edit cannot change, and its new arguments."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = None
    args: JsonObject


class EditDecision(BaseModel):
    """The call is made with other arguments."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["edit"]
    edited_action: EditedAction


class RejectDecision(BaseModel):
    """The call is not made; the model reads the `message`."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["reject"]
    message: str | None = None


class Decisions(BaseModel):
    """A decision for each call, by the call's id."""

    model_config = ConfigDict(extra="forbid")

    decisions: dict[str, Annotated[ApproveDecision | EditDecision | RejectDecision, Field(discriminator="type")]] = (
        Field(min_length=1, max_length=1000)
    )


# The API also has these routes by the name of threads.
@approvals_router.get("/threads/{thread_id}/approvals", include_in_schema=False)
@approvals_router.get("/conversations/{thread_id}/approvals", responses=problems(ThreadNotFound, reads=True))
async def approvals(served: ServedDep, user: Caller, thread_id: PathSegment) -> ApprovalList:
    """The calls of the last run that wait for a decision, and those that were decided: by whom, when and why."""
    async with served.analyst.store.reading() as tx:
        await log.find_thread(tx, thread_id, user_id=user)
        run = await runs.last_run(tx, thread_id)
        calls = await approval_store.of_run(tx, thread_id, run.id) if run else []
    waits = run is not None and run.status == "waiting"
    return {
        "thread_id": thread_id,
        "run_id": run.id if run else None,
        "pending": [waiting_call(call) for call in calls if waits and call.decision is None],
        "decided": [decided_call(call) for call in calls if call.decision],
    }


@approvals_router.post("/threads/{thread_id}/approvals", status_code=202, include_in_schema=False)
@approvals_router.post(
    "/conversations/{thread_id}/approvals", status_code=202, responses=problems(*_DECIDES, body=True) | _PART
)
async def decide(
    served: ServedDep, user: Caller, thread_id: PathSegment, body: Decisions, response: Response
) -> Accepted | ApprovalList:
    """Store all decisions or none. After the last one the run goes on under its id (202); else 200 and those that
    wait. A decision stands under the id of its call: `approve`, `edit` with an `edited_action`, or `reject` with a
    `message`. 409 for a call that does not wait."""
    decisions = {call: decision.model_dump() for call, decision in body.decisions.items()}
    handle = await served.analyst.approvals.decide(thread_id, decisions, user_id=user)
    if handle is not None:
        return {"thread_id": thread_id, "run_id": handle.run.id, "events": events_path(handle.run)}
    response.status_code = 200
    return await approvals(served, user, thread_id)
