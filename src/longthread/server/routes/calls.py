"""The calls of the model in a conversation, and what each saw."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from longthread.errors import CursorUnknown, EntryNotFound, ThreadNotFound
from longthread.server.answers import CallList, CallView
from longthread.server.calls import call_list, call_view
from longthread.server.fields import PlainText
from longthread.server.openapi import problems
from longthread.server.paths import PathSegment
from longthread.server.routes.chat import StepIndex
from longthread.server.state import Caller, ServedDep
from longthread.store import log

router = APIRouter(prefix="/api", tags=["calls"])


@router.get("/conversations/{thread_id}/calls", responses=problems(ThreadNotFound, CursorUnknown, reads=True))
async def calls(
    served: ServedDep,
    user: Caller,
    thread_id: PathSegment,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: str | None = None,
    run: PlainText | None = None,
) -> CallList:
    """The last calls of the model, or those before a cursor; with `run`, all calls of that run."""
    async with served.analyst.store.reading() as tx:
        await log.find_thread(tx, thread_id, user_id=user)
        return await call_list(tx, thread_id, limit=limit, before=before, run_id=run)


@router.get("/conversations/{thread_id}/calls/{index}", responses=problems(ThreadNotFound, EntryNotFound, reads=True))
async def call(
    served: ServedDep,
    user: Caller,
    thread_id: PathSegment,
    index: StepIndex,
    against: Annotated[int | None, Query(ge=0, lt=2**62)] = None,
) -> CallView:
    """What the call at this step saw: each entry, how it went in, its tokens, and why; and how that differs from the
    call before, or from the one at step `against`."""
    async with served.analyst.store.reading() as tx:
        await log.find_thread(tx, thread_id, user_id=user)
        return await call_view(tx, thread_id, index, against)
