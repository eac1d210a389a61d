"""The questions that wait in a conversation."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from longthread.errors import QuestionNotFound, RunNotFound, ThreadNotFound
from longthread.server.answers import QueuedList, QueuedState
from longthread.server.history import queued_path, queued_view
from longthread.server.openapi import STREAM, problems
from longthread.server.paths import PathSegment
from longthread.server.queued_stream import QueuedStream
from longthread.server.requests import EVENT_STREAM, NO_STORE
from longthread.server.routes.chat import ALL_READ
from longthread.server.routes.chat import events as run_events
from longthread.server.state import Caller, ServedDep
from longthread.server.stream import PATTERN, Position
from longthread.store.questions.queue import QueuedQuestion

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
) -> Response:
    """Comments while the question waits, then the events of its run, as the run's own stream has them."""
    found = await served.analyst.queue.find(thread_id, question_id, user_id=user)
    if isinstance(found, str):
        return await run_events(served, user, thread_id, found, after, last_event_id)
    stream = QueuedStream(served, found, user=user, read=Position.parse(last_event_id or after))
    return StreamingResponse(aiter(stream), media_type=EVENT_STREAM, headers=NO_STORE)
