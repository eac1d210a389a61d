"""Messages: appended without a run, annotated, judged, and edited and asked again in a branch of their own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from longthread.errors import (
    CallNotOpen,
    CursorUnknown,
    EntryNotFound,
    InvalidInput,
    KeyReused,
    MessageTaken,
    MessageTooLong,
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
from longthread.model.entry import Role, ToolCall
from longthread.model.thread import FEEDBACK_LENGTH, Feedback, Opinion
from longthread.runs.rights import asker_of
from longthread.runs.services.branches import ForkOptions
from longthread.runs.services.feedback import all_judged, judged_page, place_of_answer
from longthread.runs.services.threads import MOST_CALLS
from longthread.runs.shared import RunHandle
from longthread.server.answers import EditedQuery, JsonObject, TriedQuery
from longthread.server.conversation_answers import (
    Accepted,
    ChosenBranch,
    FeedbackList,
    FeedbackView,
    MessageMetadata,
    MessageView,
)
from longthread.server.fields import Name, PathSegment, PlainText, Words, decode_cursor, encode_cursor
from longthread.server.history import message_json, step_json
from longthread.server.openapi import problems
from longthread.server.requests import NO_STORE
from longthread.server.routes.chat import (
    BEGINS,
    IdempotencyKey,
    Options,
    StepIndex,
    blame_named_model,
    once,
    question_key,
)
from longthread.server.state import Caller, CallerRights, Granted, ProjectCaller, Rights, Served, ServedDep
from longthread.store import attributes, listing, log
from longthread.store.wait_list import QuestionKey

router = APIRouter(prefix="/api", tags=["conversations"])

Id = Annotated[PlainText, Field(min_length=1, max_length=1000)]


class WrittenFunction(BaseModel):
    """The tool of a call, and its arguments: an object, or the text of one as OpenAI has it."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[Name, Field(max_length=200)]
    arguments: JsonObject | str = {}


class WrittenCall(BaseModel):
    """A tool call in OpenAI's form (document 002)."""

    model_config = ConfigDict(extra="forbid")

    id: Annotated[Name, Field(max_length=200)]
    type: Literal["function"] = "function"
    function: WrittenFunction

    def call(self) -> ToolCall:
        """Return the call with its arguments decoded. Raises InvalidInput: they are no JSON object."""
        args = self.function.arguments
        try:
            decoded = json.loads(args.strip() or "{}") if isinstance(args, str) else args
        except (ValueError, RecursionError):
            decoded = None
        if not isinstance(decoded, dict):
            raise InvalidInput(reason=f"The arguments of the call {self.id} are no JSON object. Give one.")
        return ToolCall(self.id, self.function.name, decoded)


class NewMessage(BaseModel):
    """A message that is added without a run. Without an `id` it gets one. It follows `parent_id`, by default the last
    message. Only an assistant's has `tool_calls`; a tool's has the `tool_call_id` of the call that it answers."""

    model_config = ConfigDict(extra="forbid")

    id: Id | None = None
    role: Role
    content: str
    parent_id: Id | None = None
    tool_calls: Annotated[list[WrittenCall], Field(max_length=MOST_CALLS)] = []
    tool_call_id: Annotated[Name, Field(max_length=200)] | None = None
    metadata: JsonObject = {}


class MessageChanges(BaseModel):
    """Changes of a message's metadata; a null key is removed."""

    model_config = ConfigDict(extra="forbid")

    metadata: JsonObject


@router.post(
    "/conversations/{thread_id}/messages",
    status_code=201,
    responses=problems(
        ThreadNotFound, EntryNotFound, RunInProgress, MessageTaken, MessageTooLong, CallNotOpen, body=True
    ),
)
async def append(served: ServedDep, user: Caller, thread_id: PathSegment, body: NewMessage) -> MessageView:
    """Add a message without a run. Behind another than the last one it begins a branch, which the conversation then
    follows. With an `id` it may be sent again: it is stored once. The answer is the message as in the history."""
    entry = await served.analyst.threads.append(
        thread_id,
        body.role,
        body.content,
        user_id=user,
        message_id=body.id,
        parent_id=body.parent_id,
        tool_calls=[each.call() for each in body.tool_calls],
        tool_call_id=body.tool_call_id,
        metadata=body.metadata,
    )
    async with served.analyst.store.reading() as tx:
        return await message_json(tx, await log.find_thread(tx, thread_id, user_id=user), entry)


@router.patch(
    "/conversations/{thread_id}/messages/{message_id}", responses=problems(ThreadNotFound, EntryNotFound, body=True)
)
async def change_message(
    served: ServedDep, user: Caller, thread_id: PathSegment, message_id: PathSegment, body: MessageChanges
) -> MessageMetadata:
    """Set metadata of a message; the message itself does not change. The metadata is merged by key."""
    async with served.analyst.store.writing() as tx:
        changed = await attributes.set_message_metadata(tx, thread_id, message_id, body.metadata, user_id=user)
    return {"id": message_id, "thread_id": thread_id, "metadata": dict(changed)}


feedback_router = APIRouter(prefix="/api", tags=["feedback"])

_LINES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file", "content": {"application/jsonl": {"schema": {"type": "string"}}}}
}


class NewFeedback(BaseModel):
    """An opinion of an answer, with a sentence that says why."""

    model_config = ConfigDict(extra="forbid")

    opinion: Opinion
    text: Annotated[PlainText, Field(max_length=FEEDBACK_LENGTH)] = ""


@feedback_router.put(
    "/conversations/{thread_id}/messages/{message_id}/feedback",
    status_code=204,
    responses=problems(ThreadNotFound, EntryNotFound, body=True),
)
async def give_feedback(
    served: ServedDep, user: Caller, thread_id: PathSegment, message_id: PathSegment, body: NewFeedback
) -> Response:
    """Say what you think of an answer, in the place of what you said before. The answer itself does not change."""
    given = Feedback(body.opinion, datetime.now(UTC), body.text.strip())
    async with served.analyst.store.writing() as tx:
        await attributes.set_feedback(tx, thread_id, message_id, given, user_id=user)
    return Response(status_code=204)


@feedback_router.delete(
    "/conversations/{thread_id}/messages/{message_id}/feedback",
    status_code=204,
    responses=problems(ThreadNotFound, EntryNotFound),
)
async def take_feedback_back(
    served: ServedDep, user: Caller, thread_id: PathSegment, message_id: PathSegment
) -> Response:
    """Take back what you said about an answer; nothing if there is none."""
    async with served.analyst.store.writing() as tx:
        await attributes.set_feedback(tx, thread_id, message_id, None, user_id=user)
    return Response(status_code=204)


@feedback_router.get("/feedback", responses=problems(ThreadNotFound, CursorUnknown, reads=True))
async def list_feedback(
    served: ServedDep,
    user: ProjectCaller,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: str | None = None,
    thread_id: PlainText | None = None,
) -> FeedbackList:
    """The answers that were judged, the latest first, each with its question, its SQL and its `call`. What the model
    saw then is at `/api/conversations/{thread_id}/calls/{call}`. `thread_id`: those of one conversation."""
    at, entry_id = decode_cursor(cursor, str, str) if cursor else listing.LATEST
    async with served.analyst.store.reading() as tx:
        if thread_id is not None:
            await log.find_thread(tx, thread_id, user_id=user)
        found = await judged_page(tx, user_id=user, limit=limit + 1, before=(at, entry_id), thread_id=thread_id or "")
    more = encode_cursor(*place_of_answer(found[limit - 1])) if len(found) > limit else None
    return {"feedback": [cast(FeedbackView, each.to_json()) for each in found[:limit]], "next_cursor": more}


@feedback_router.get("/feedback/export", response_class=Response, responses=problems(reads=True) | _LINES)
async def export_feedback(served: ServedDep, user: ProjectCaller) -> StreamingResponse:
    """All judged answers as an evaluation set: a JSON object a line, as `longthread eval analyst` reads it."""

    async def lines() -> AsyncIterator[str]:
        async for each in all_judged(served.analyst.store, user_id=user):
            yield json.dumps(each.to_eval(), ensure_ascii=False) + "\n"

    headers = {"content-disposition": 'attachment; filename="feedback.jsonl"', **NO_STORE}
    return StreamingResponse(lines(), media_type="application/jsonl", headers=headers)


branches_router = APIRouter(prefix="/api", tags=["branches"])

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


@branches_router.post("/conversations/{thread_id}/messages/{message_id}/edit", status_code=202, responses=_FORKS)
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
    key = question_key(idempotency_key, body, "edit", thread_id, message_id, whose=rights.principal.user)
    options = _options(rights, body, key)
    edited = served.analyst.branches.edit
    return await _once(
        served, user, options, lambda: edited(thread_id, message_id, body.question, user_id=user, options=options)
    )


@branches_router.post("/conversations/{thread_id}/messages/{message_id}/again", status_code=202, responses=_FORKS)
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
    key = question_key(idempotency_key, body, "again", thread_id, message_id, whose=rights.principal.user)
    options = _options(rights, body, key)
    asked = served.analyst.branches.again
    return await _once(served, user, options, lambda: asked(thread_id, message_id, user_id=user, options=options))


@branches_router.post(
    "/conversations/{thread_id}/steps/{index}/try",
    responses=problems(ThreadNotFound, EntryNotFound, RunNotFound, SourceError, SourceMissing, body=True),
)
async def try_query(
    served: ServedDep, user: Caller, granted: Granted, thread_id: PathSegment, index: StepIndex, body: QueryBody
) -> TriedQuery:
    """Run a step's query as the user has edited it, through the guard. Nothing is written: `edit` makes a branch.
    The `step` of the answer has no number."""
    tried = await served.analyst.query_edits.preview(thread_id, index, body.sql, user_id=user, rights=granted)
    step = step_json(tried)
    step["step"] = None
    return {"thread_id": thread_id, "step": step}


@branches_router.post(
    "/conversations/{thread_id}/steps/{index}/edit",
    status_code=201,
    responses=problems(
        ThreadNotFound, EntryNotFound, RunNotFound, NotAQuestion, RunInProgress, SourceError, SourceMissing, body=True
    ),
)
async def edit_query(
    served: ServedDep, user: Caller, granted: Granted, thread_id: PathSegment, index: StepIndex, body: QueryBody
) -> EditedQuery:
    """Run a step's query as the user has edited it, through the guard. The question gets another branch, with the call
    and its result; no model is asked. A query that is refused or fails changes nothing."""
    step = await served.analyst.query_edits.run(thread_id, index, body.sql, user_id=user, rights=granted)
    return {"thread_id": thread_id, "run_id": step.run_id, "step": step_json(step)}


@branches_router.put(
    "/conversations/{thread_id}/branch",
    responses=problems(ThreadNotFound, EntryNotFound, RunInProgress, NotSupported, body=True),
)
async def choose(served: ServedDep, user: Caller, thread_id: PathSegment, body: BranchChoice) -> ChosenBranch:
    """Follow the branch with a message: its end is where it was left, and the conversation goes on from there."""
    end = await served.analyst.branches.choose(thread_id, body.message, user_id=user)
    return {"thread_id": thread_id, "end": end.id}


def _options(rights: CallerRights, body: Options, key: QuestionKey | None) -> ForkOptions:
    source, model = rights.source(body.source), rights.model(body.model)
    return ForkOptions(source, model, body.max_steps, key, asker_of(rights.principal))


async def _once(served: Served, user: str, options: ForkOptions, begin: Callable[[], Awaitable[RunHandle]]) -> Accepted:
    with blame_named_model(options.model):
        return cast(Accepted, await once(served, user, options.key, begin))  # none of these waits in the queue
