"""Calls that wait for a person's approval, and the decisions."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from longthread.server.history import events_path
from longthread.server.paths import PathSegment
from longthread.server.state import Caller, ServedDep
from longthread.store import approvals as approval_store
from longthread.store import log, runs

router = APIRouter(prefix="/api", tags=["approvals"])


class Decisions(BaseModel):
    """For each call, by its id, `{"type": "approve"}`, `{"type": "edit", "edited_action": {"name", "args"}}` or
    `{"type": "reject", "message"?}`."""

    model_config = ConfigDict(extra="forbid")

    decisions: dict[str, dict[str, Any]] = Field(min_length=1, max_length=1000)


# The API also has these routes by the name of threads.
@router.get("/threads/{thread_id}/approvals", include_in_schema=False)
@router.get("/conversations/{thread_id}/approvals")
async def approvals(served: ServedDep, user: Caller, thread_id: PathSegment) -> dict[str, Any]:
    """The calls of the last run that wait for a decision, and those that were decided: by whom, when and why."""
    async with served.analyst.store.reading() as tx:
        await log.find_thread(tx, thread_id, user_id=user)
        run = await runs.last_run(tx, thread_id)
        calls = await approval_store.of_run(tx, thread_id, run.id) if run else []
    waits = run is not None and run.status == "waiting"
    return {
        "thread_id": thread_id,
        "run_id": run.id if run else None,
        "pending": [call.request() for call in calls if waits and call.decision is None],
        "decided": [call.to_json() for call in calls if call.decision],
    }


@router.post("/threads/{thread_id}/approvals", status_code=202, include_in_schema=False)
@router.post("/conversations/{thread_id}/approvals", status_code=202)
async def decide(
    served: ServedDep, user: Caller, thread_id: PathSegment, body: Decisions, response: Response
) -> dict[str, Any]:
    """Store all decisions or none. After the last one the run goes on under its id (202); else 200 and those that
    wait."""
    handle = await served.analyst.approvals.decide(thread_id, body.decisions, user_id=user)
    if handle is not None:
        return {"thread_id": thread_id, "run_id": handle.run.id, "events": events_path(handle.run)}
    response.status_code = 200
    return await approvals(served, user, thread_id)
