"""The questions that wait in a conversation.

A queued question's stream has comments while it waits, then the events of its run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated

from ag_ui.core import CustomEvent
from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from longthread.errors import QuestionNotFound, RunNotFound, ThreadNotFound
from longthread.server.answers import QueuedList, QueuedState
from longthread.server.events import REMOVED
from longthread.server.fields import PathSegment
from longthread.server.history import queued_path, queued_view
from longthread.server.language import AskedLanguage, PageLanguage
from longthread.server.openapi import STREAM, problems
from longthread.server.requests import EVENT_STREAM, NO_STORE
from longthread.server.routes.chat import ALL_READ
from longthread.server.routes.chat import events as run_events
from longthread.server.state import Caller, Served, ServedDep
from longthread.server.stream import HEARTBEAT_SECONDS, PATTERN, RETRY_MS, Position, RunStream, frame
from longthread.store import runs
from longthread.store.questions import QueuedQuestion

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


router = APIRouter(prefix="/api", tags=["queue"])


# The API also has these routes by the name of threads.
@router.get("/threads/{thread_id}/queue", include_in_schema=False)
@router.get("/conversations/{thread_id}/queue", responses=problems(ThreadNotFound, reads=True))
async def waiting(served: ServedDep, user: Caller, thread_id: PathSegment) -> QueuedList:
    """The questions that wait in a conversation, the next one first."""
    found = await served.analyst.queue.of_thread(thread_id, user_id=user)
    return {"thread_id": thread_id, "queue": [queued_view(each) for each in found]}


@router.get("/threads/{thread_id}/queue/{question_id}", include_in_schema=False)
@router.get(
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


@router.delete("/threads/{thread_id}/queue/{question_id}", status_code=204, include_in_schema=False)
@router.delete(
    "/conversations/{thread_id}/queue/{question_id}",
    status_code=204,
    responses=problems(ThreadNotFound, QuestionNotFound),
)
async def remove(served: ServedDep, user: Caller, thread_id: PathSegment, question_id: PathSegment) -> Response:
    """Remove a question that waits: it is never asked."""
    await served.analyst.queue.remove(thread_id, question_id, user_id=user)
    return Response(status_code=204)


@router.get(
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
