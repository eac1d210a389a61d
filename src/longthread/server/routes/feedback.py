"""What people think of answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from longthread.errors import CursorUnknown, EntryNotFound, ThreadNotFound
from longthread.model.thread import FEEDBACK_LENGTH, Feedback, Opinion
from longthread.runs.services.feedback import all_judged, judged_page, place_of_answer
from longthread.server.answers import FeedbackList, FeedbackView
from longthread.server.cursor import decode_cursor, encode_cursor
from longthread.server.fields import PathSegment, PlainText
from longthread.server.openapi import problems
from longthread.server.requests import NO_STORE
from longthread.server.state import Caller, ServedDep
from longthread.store import attributes, listing, log

router = APIRouter(prefix="/api", tags=["feedback"])

_LINES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file", "content": {"application/jsonl": {"schema": {"type": "string"}}}}
}


class NewFeedback(BaseModel):
    """An opinion of an answer, with a sentence that says why."""

    model_config = ConfigDict(extra="forbid")

    opinion: Opinion
    text: Annotated[PlainText, Field(max_length=FEEDBACK_LENGTH)] = ""


@router.put(
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


@router.delete(
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


@router.get("/feedback", responses=problems(ThreadNotFound, CursorUnknown, reads=True))
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


@router.get("/feedback/export", response_class=Response, responses=problems(reads=True) | _LINES)
async def export_feedback(served: ServedDep, user: Caller) -> StreamingResponse:
    """All judged answers as an evaluation set: a JSON object a line, as `longthread eval analyst` reads it."""

    async def lines() -> AsyncIterator[str]:
        async for each in all_judged(served.analyst.store, user_id=user):
            yield json.dumps(each.to_eval(), ensure_ascii=False) + "\n"

    headers = {"content-disposition": 'attachment; filename="feedback.jsonl"', **NO_STORE}
    return StreamingResponse(lines(), media_type="application/jsonl", headers=headers)
