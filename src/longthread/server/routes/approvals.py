"""Calls that wait for a person's approval, and the decisions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from longthread.errors import (
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
from longthread.server.answers import Accepted, ApprovalList, JsonObject
from longthread.server.fields import PathSegment
from longthread.server.history import decided_call, events_path, waiting_call
from longthread.server.openapi import problems
from longthread.server.state import Caller, ServedDep
from longthread.store import approvals as approval_store
from longthread.store import log, runs

router = APIRouter(prefix="/api", tags=["approvals"])

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


_Decision = Annotated[ApproveDecision | EditDecision | RejectDecision, Field(discriminator="type")]


class Decisions(BaseModel):
    """A decision for each call, by the call's id."""

    model_config = ConfigDict(extra="forbid")

    decisions: dict[str, Annotated[ApproveDecision | EditDecision | RejectDecision, Field(discriminator="type")]] = (
        Field(min_length=1, max_length=1000)
    )


# The API also has these routes by the name of threads.
@router.get("/threads/{thread_id}/approvals", include_in_schema=False)
@router.get("/conversations/{thread_id}/approvals", responses=problems(ThreadNotFound, reads=True))
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


@router.post("/threads/{thread_id}/approvals", status_code=202, include_in_schema=False)
@router.post("/conversations/{thread_id}/approvals", status_code=202, responses=problems(*_DECIDES, body=True) | _PART)
async def decide(
    served: ServedDep, user: Caller, thread_id: PathSegment, body: Decisions, response: Response
) -> Accepted | ApprovalList:
    """Store all decisions or none. After the last one the run goes on under its id (202); else 200 and those that
    wait."""
    decisions = {call: decision.model_dump() for call, decision in body.decisions.items()}
    handle = await served.analyst.approvals.decide(thread_id, decisions, user_id=user)
    if handle is not None:
        return {"thread_id": thread_id, "run_id": handle.run.id, "events": events_path(handle.run)}
    response.status_code = 200
    return await approvals(served, user, thread_id)
