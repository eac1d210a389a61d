"""Messages of conversations: appended without a run, and annotated."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from longthread.errors import (
    CallNotOpen,
    EntryNotFound,
    InvalidInput,
    MessageTaken,
    MessageTooLong,
    RunInProgress,
    ThreadNotFound,
)
from longthread.model.entry import Role, ToolCall
from longthread.runs.services.threads import MOST_CALLS
from longthread.server.answers import JsonObject, MessageMetadata, MessageView
from longthread.server.fields import Name, PathSegment, PlainText
from longthread.server.history import message_json
from longthread.server.openapi import problems
from longthread.server.state import Caller, ServedDep
from longthread.store import attributes, log

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
