"""Branches of a conversation: questions edited and asked again, and the branch chosen that it follows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, cast

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from longthread.errors import (
    EntryNotFound,
    KeyReused,
    NotAQuestion,
    NotSupported,
    QuestionNotFound,
    QuestionTooLong,
    RunInProgress,
    RunNotFound,
    SourceError,
    SourceMissing,
    ThreadNotFound,
)
from longthread.runs.services.branches import ForkOptions
from longthread.runs.shared import RunHandle
from longthread.server.answers import Accepted, ChosenBranch, EditedQuery, TriedQuery
from longthread.server.fields import Name, PathSegment, PlainText, Words
from longthread.server.history import step_json
from longthread.server.openapi import problems
from longthread.server.routes.chat import (
    BEGINS,
    IdempotencyKey,
    Options,
    StepIndex,
    blame_named_model,
    once,
    question_key,
)
from longthread.server.state import Caller, CallerRights, Rights, Served, ServedDep
from longthread.store.questions import QuestionKey

router = APIRouter(prefix="/api", tags=["branches"])

_FORKS = problems(*BEGINS, EntryNotFound, KeyReused, NotAQuestion, QuestionNotFound, QuestionTooLong, body=True)


class EditBody(Options):
    """Another question in the place of one."""

    question: Words


class QueryBody(BaseModel):
    """A query as somebody has edited it."""

    model_config = ConfigDict(extra="forbid")

    sql: Name


class BranchChoice(BaseModel):
    """The branch with this message, by its id."""

    model_config = ConfigDict(extra="forbid")

    message: Annotated[PlainText, Field(min_length=1, max_length=1000)]


@router.post("/conversations/{thread_id}/messages/{message_id}/edit", status_code=202, responses=_FORKS)
async def edit(
    served: ServedDep,
    user: Caller,
    rights: Rights,
    thread_id: PathSegment,
    message_id: PathSegment,
    body: EditBody,
    idempotency_key: IdempotencyKey = None,
) -> Accepted:
    """Ask another question in the place of one. The one that was there stays, with all that followed, as a sibling."""
    key = question_key(idempotency_key, body, "edit", thread_id, message_id)
    options = _options(rights, body, key)
    edited = served.analyst.branches.edit
    return await _once(
        served, user, options, lambda: edited(thread_id, message_id, body.question, user_id=user, options=options)
    )


@router.post("/conversations/{thread_id}/messages/{message_id}/again", status_code=202, responses=_FORKS)
async def again(
    served: ServedDep,
    user: Caller,
    rights: Rights,
    thread_id: PathSegment,
    message_id: PathSegment,
    body: Options | None = None,
    idempotency_key: IdempotencyKey = None,
) -> Accepted:
    """Have a question answered again, given by its id or by that of an answer. The answers are siblings."""
    body = body or Options()
    key = question_key(idempotency_key, body, "again", thread_id, message_id)
    options = _options(rights, body, key)
    asked = served.analyst.branches.again
    return await _once(served, user, options, lambda: asked(thread_id, message_id, user_id=user, options=options))


@router.post(
    "/conversations/{thread_id}/steps/{index}/try",
    responses=problems(ThreadNotFound, EntryNotFound, RunNotFound, SourceError, SourceMissing, body=True),
)
async def try_query(
    served: ServedDep, user: Caller, thread_id: PathSegment, index: StepIndex, body: QueryBody
) -> TriedQuery:
    """Run a step's query as the user has edited it, through the guard. Nothing is written: `edit` makes a branch."""
    step = step_json(await served.analyst.query_edits.preview(thread_id, index, body.sql, user_id=user))
    step["step"] = None
    return {"thread_id": thread_id, "step": step}


@router.post(
    "/conversations/{thread_id}/steps/{index}/edit",
    status_code=201,
    responses=problems(
        ThreadNotFound, EntryNotFound, RunNotFound, NotAQuestion, RunInProgress, SourceError, SourceMissing, body=True
    ),
)
async def edit_query(
    served: ServedDep, user: Caller, thread_id: PathSegment, index: StepIndex, body: QueryBody
) -> EditedQuery:
    """Run a step's query as the user has edited it, through the guard. The question gets another branch, with the call
    and its result; no model is asked. A query that is refused or fails changes nothing."""
    step = await served.analyst.query_edits.run(thread_id, index, body.sql, user_id=user)
    return {"thread_id": thread_id, "run_id": step.run_id, "step": step_json(step)}


@router.put(
    "/conversations/{thread_id}/branch",
    responses=problems(ThreadNotFound, EntryNotFound, RunInProgress, NotSupported, body=True),
)
async def choose(served: ServedDep, user: Caller, thread_id: PathSegment, body: BranchChoice) -> ChosenBranch:
    """Follow the branch with a message: its end is where it was left, and the conversation goes on from there."""
    end = await served.analyst.branches.choose(thread_id, body.message, user_id=user)
    return {"thread_id": thread_id, "end": end.id}


def _options(rights: CallerRights, body: Options, key: QuestionKey | None) -> ForkOptions:
    source, model = rights.source(body.source), rights.model(body.model)
    return ForkOptions(source, model, body.max_steps, key)


async def _once(served: Served, user: str, options: ForkOptions, begin: Callable[[], Awaitable[RunHandle]]) -> Accepted:
    with blame_named_model(options.model):
        return cast(Accepted, await once(served, user, options.key, begin))  # none of these waits in the queue
