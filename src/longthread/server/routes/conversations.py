"""Conversations: the list, and what may be done to one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, StringConstraints

from longthread.agent.owner import may_be_alive
from longthread.errors import NothingToResume, RunElsewhere
from longthread.model.thread import Thread
from longthread.server.cursor import decode_cursor, encode_cursor
from longthread.server.history import history, run_json
from longthread.server.state import Served, ServedDep
from longthread.store import log, runs

router = APIRouter(prefix="/api", tags=["conversations"])

EXCERPT = 160
"""Characters of the text that a search found."""


class Rename(BaseModel):
    """A conversation's new label."""

    label: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


@router.get("/conversations")
async def list_conversations(
    served: ServedDep,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: str | None = None,
    q: Annotated[str, Query(max_length=200)] = "",
) -> dict[str, Any]:
    """The conversations, latest active first; with `q`, those that say it, each with the place (`match`)."""
    user = served.analyst.settings.user
    async with served.analyst.store.reading() as tx:
        if q.strip():
            hits = await log.search_threads(tx, q.strip(), user_id=user, limit=limit)
            return {"conversations": [_item(t) | {"match": _excerpt(hit, q)} for t, hit in hits], "next_cursor": None}
        after = _behind(cursor) if cursor else {}
        threads = await log.list_threads(tx, user_id=user, limit=limit + 1, **after)
    shown = threads[:limit]
    more = _cursor(shown[-1]) if len(threads) > limit else None
    return {"conversations": [_item(thread) for thread in shown], "next_cursor": more}


@router.patch("/conversations/{thread_id}")
async def rename(served: ServedDep, thread_id: str, body: Rename) -> dict[str, Any]:
    """Give a conversation another label."""
    user = served.analyst.settings.user
    async with served.analyst.store.writing() as tx:
        await log.rename_thread(tx, thread_id, body.label, user_id=user)
        return _item(await log.find_thread(tx, thread_id, user_id=user))


@router.delete("/conversations/{thread_id}", status_code=204)
async def delete(served: ServedDep, thread_id: str) -> Response:
    """Delete a conversation with all that is kept of it. Its run is stopped first."""
    await _stop(served, thread_id)
    async with served.analyst.store.writing() as tx:
        await log.delete_thread(tx, thread_id, user_id=served.analyst.settings.user)
    return Response(status_code=204)


@router.post("/conversations/{thread_id}/stop")
async def stop(served: ServedDep, thread_id: str) -> dict[str, Any]:
    """Stop the conversation's run, if it has one; what it has done is kept. Answers with its last run."""
    await _stop(served, thread_id)
    async with served.analyst.store.reading() as tx:
        run = await runs.last_run(tx, thread_id)
        return {"thread_id": thread_id, "run": await run_json(tx, run) if run else None}


@router.get("/chat/history")
async def chat_history(
    served: ServedDep,
    thread_id: str,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: str | None = None,
) -> dict[str, Any]:
    """A conversation's last messages with their runs and steps; `before` of an answer leads to the ones before."""
    async with served.analyst.store.reading() as tx:
        return await history(tx, thread_id, user_id=served.analyst.settings.user, limit=limit, before=before)


@router.get("/state")
async def state(served: ServedDep, thread_id: str) -> dict[str, Any]:
    """A conversation's state with document 000's fields."""
    return await served.analyst.state(thread_id)


async def _stop(served: Served, thread_id: str) -> None:
    """Stop the thread's run. A run that this process does not execute must not be executed at all.

    Raises:
        RunElsewhere: another process executes it.
    """
    try:
        await served.analyst.stop(thread_id)
    except NothingToResume:
        async with served.analyst.store.reading() as tx:
            run = await runs.last_run(tx, thread_id)
            if run is not None and await runs.is_held(tx, run, alive=may_be_alive):
                raise RunElsewhere(thread=thread_id, run=run.id) from None


def _cursor(last: Thread) -> str:
    return encode_cursor(last.updated_at.isoformat(timespec="microseconds"), last.id)


def _behind(cursor: str) -> dict[str, tuple[str, str]]:
    at, thread_id = decode_cursor(cursor, str, str)
    return {"before": (at, thread_id)}


def _item(thread: Thread) -> dict[str, Any]:
    return {
        "id": thread.id,
        "label": thread.title or "",
        "lastActiveAt": thread.updated_at.isoformat(),
        "createdAt": thread.created_at.isoformat(),
        "source": thread.source,
        "messageCount": thread.entry_count,
    }


def _excerpt(text: str, wanted: str) -> str:
    """The part of a text around the first place where it says what was searched for."""
    line = " ".join(text.split())
    at = max(0, line.lower().find(wanted.strip().lower()) - EXCERPT // 4)
    return f"{'…' if at else ''}{line[at : at + EXCERPT]}{'…' if at + EXCERPT < len(line) else ''}"
