"""What a client watches, over one connection."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse
from pydantic import Field

from longthread.errors import PositionUnknown, RunNotFound, ThreadNotFound
from longthread.runs.streams.hub import RunPlace
from longthread.server.openapi import EVENTS, problems
from longthread.server.requests import EVENT_STREAM, NO_STORE
from longthread.server.routes.conversations import list_conversations
from longthread.server.state import Caller, Served, ServedDep
from longthread.server.user_stream import MOST_RUNS, RUN_PATTERN, AskedRun, Positions, UserStream
from longthread.store import runs

router = APIRouter(prefix="/api", tags=["events"])

AskedText = Annotated[str, Field(pattern=RUN_PATTERN)]


@router.get("/events", response_class=StreamingResponse, responses=problems(PositionUnknown, reads=True) | EVENTS)
async def user_events(
    served: ServedDep,
    user: Caller,
    run: Annotated[list[AskedText], Query(max_length=MOST_RUNS)] = [],  # noqa: B006 - FastAPI copies it
    after: str = "",
    last_event_id: Annotated[str, Header()] = "",
) -> StreamingResponse:
    """The changes of the user's conversations, the waiting approvals, and the events of each `run` (`THREAD/RUN`, with
    `:POSITION` if some was read), over server-sent events; all from the start or after the `id` last read."""
    asked = [AskedRun.parse(each) for each in run]
    positions = Positions.parse(last_event_id or after, asked)
    places = [each.place for each in asked]
    gone = {place for place in places if not await _is_there(served, user, place)}
    listed = served.lists.of(user, partial(list_conversations, served, user))
    stream = UserStream(served.analyst.hub, served.encoders, listed, places, gone, positions, served.closing)
    return StreamingResponse(aiter(stream), media_type=EVENT_STREAM, headers=NO_STORE)


async def _is_there(served: Served, user: str, place: RunPlace) -> bool:
    """Whether the user has such a run."""
    async with served.analyst.store.reading() as tx:
        try:
            await runs.run_of_user(tx, *place, user_id=user)
        except (ThreadNotFound, RunNotFound):
            return False
        return True
