"""Messages of conversations: appended without a run, annotated, and what people think of answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
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
    MessageTaken,
    MessageTooLong,
    RunInProgress,
    ThreadNotFound,
)
from longthread.model.entry import Role, ToolCall
from longthread.model.thread import FEEDBACK_LENGTH, Feedback, Opinion
from longthread.runs.services.feedback import all_judged, judged_page, place_of_answer
from longthread.runs.services.threads import MOST_CALLS
from longthread.server.answers import FeedbackList, FeedbackView, JsonObject, MessageMetadata, MessageView
from longthread.server.fields import Name, PathSegment, PlainText, decode_cursor, encode_cursor
from longthread.server.history import message_json
from longthread.server.openapi import problems
from longthread.server.requests import NO_STORE
from longthread.server.state import Caller, ServedDep
from longthread.store import attributes, listing, log

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
    follows. With an `id` it may be sent again: it is stored once."""
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
    """Set metadata of a message; the message itself does not change."""
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
    user: Caller,
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
async def export_feedback(served: ServedDep, user: Caller) -> StreamingResponse:
    """All judged answers as an evaluation set: a JSON object a line, as `longthread eval analyst` reads it."""

    async def lines() -> AsyncIterator[str]:
        async for each in all_judged(served.analyst.store, user_id=user):
            yield json.dumps(each.to_eval(), ensure_ascii=False) + "\n"

    headers = {"content-disposition": 'attachment; filename="feedback.jsonl"', **NO_STORE}
    return StreamingResponse(lines(), media_type="application/jsonl", headers=headers)
