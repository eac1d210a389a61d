"""Conversations: begun, listed, changed, stopped and deleted, and one of them as a file."""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, BinaryIO, Literal, Self, cast

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from longthread.access import audit
from longthread.errors import (
    AgentOff,
    CursorUnknown,
    DefinitionNotFound,
    EntryNotFound,
    NothingToStop,
    ProjectNotFound,
    RowDamaged,
    SourceError,
    ThreadNotFound,
    ThreadTaken,
)
from longthread.model.markdown import plain
from longthread.model.memory import ANALYST
from longthread.model.run import ShownStatus
from longthread.model.thread import Archived, SessionStatus, Thread
from longthread.runs.worker import may_be_alive
from longthread.server.answers import JsonObject, Stopped
from longthread.server.conversation_answers import (
    ConversationList,
    ConversationView,
    DeletionView,
    History,
    StateView,
    TagList,
)
from longthread.server.fields import WHOLE, Flag, Name, PathSegment, PlainText, Time, content_disposition, thread_page
from longthread.server.history import attributes_json, history, run_json
from longthread.server.openapi import problems
from longthread.server.page import AskedLanguage, translate_history
from longthread.server.requests import NO_STORE
from longthread.server.state import (
    Caller,
    PrincipalDep,
    ProjectCaller,
    Rights,
    Served,
    ServedDep,
    acting_user,
    expect_client_id,
)
from longthread.store import attributes, catalog, listing, log, runs, wait_list
from longthread.store.driver import Transaction
from longthread.store.transfer.archive import branch_markdown, export_lines

_log = logging.getLogger(__name__)
router = APIRouter(prefix="/api", tags=["conversations"])

EXCERPT = 160
"""Characters of the text that a search found."""
_NEAR = 1_000
"""Characters before the place, and after it, that an excerpt may show."""


Tag = Annotated[Name, Field(max_length=attributes.TAG_LENGTH)]
Tags = Annotated[list[Tag], Field(max_length=attributes.MOST_TAGS)]
Label = Annotated[Name, StringConstraints(strip_whitespace=True, max_length=200)]


class NewConversation(BaseModel):
    """A conversation before its first question. Without an `id` it gets one, without an `agent` it is the analyst's."""

    model_config = ConfigDict(extra="forbid")

    id: Annotated[PlainText, Field(min_length=1, max_length=1000)] | None = None
    title: Label | None = None
    agent: Annotated[PlainText, Field(min_length=1, max_length=100)] | None = None
    source: Annotated[PlainText, Field(min_length=1, max_length=4096)] | None = None
    tags: Tags = []
    metadata: JsonObject = {}
    project: Annotated[PlainText, Field(max_length=100)] | None = None


class Changes(BaseModel):
    """Changes of a conversation; omitted fields stay. A null key of `metadata` is removed, a null `expires_at` removes
    the expiry, and `ttl_seconds` sets it from now. Lists leave an archived one out, and show a pinned one first."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"minProperties": 1, "not": {"required": ["expires_at", "ttl_seconds"]}},
    )

    label: Label | None = None
    tags: Tags | None = None
    metadata: JsonObject | None = None
    status: SessionStatus | None = None
    expires_at: Time | None = None
    ttl_seconds: Annotated[int, Field(ge=1, le=10**10), WHOLE] | None = None
    archived: Flag | None = None
    pinned: Flag | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError(
                "give at least one of label, tags, metadata, status, expires_at, ttl_seconds, archived, pinned"
            )
        if {"expires_at", "ttl_seconds"} <= self.model_fields_set:
            raise ValueError("give expires_at or ttl_seconds, not both")
        return self


@router.get("/conversations", responses=problems(ThreadNotFound, CursorUnknown, reads=True))
async def list_conversations(
    served: ServedDep,
    user: ProjectCaller,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: str | None = None,
    q: Annotated[PlainText, Query(max_length=200)] = "",
    children: bool = False,
    parent: PlainText | None = None,
    archived: Archived = "exclude",
    pinned: bool = False,
    tag: Annotated[PlainText, Query(max_length=attributes.TAG_LENGTH)] = "",
) -> ConversationList:
    """The conversations, latest active first; with `q`, those that contain it, each with the place (`match`).

    `children` adds the conversations between agents; `parent` lists those directly below one. `archived` says
    whether archived ones are among them. With `pinned` only pinned ones are listed, with `tag` those that have it.
    `damaged` has the ids of those that cannot be read and were skipped. `q` finds titles and tags too, and has no
    cursor; the `message` of a `match` is null where the title was found. Lists and searches leave archived ones
    out, unless `archived` is `include` or `only`."""
    damaged: dict[str, str] = {}
    more = None
    async with served.analyst.store.reading() as tx:
        if parent is not None:
            await log.find_thread(tx, parent, user_id=user)
            items = await _items(tx, await listing.children(tx, parent, user_id=user, unreadable=damaged), user)
        elif q.strip():
            hits = await listing.search_threads(
                tx, q.strip(), user_id=user, limit=limit, archived=archived, tag=tag, unreadable=damaged
            )
            items = await _items(tx, [thread for thread, _ in hits], user)
            for item, (_, hit) in zip(items, hits, strict=True):
                item["match"] = {"text": _excerpt(hit, q), "message": hit.entry}
        else:
            among: dict[str, Any] = {"below": children, "archived": archived, "pinned": pinned, "tag": tag}
            threads, more = await thread_page(tx, user, limit, cursor, damaged, **among)
            items = await _items(tx, threads, user)
    for thread_id, reason in damaged.items():
        _log.warning("not listed, for it is damaged: thread %s: %s", thread_id, reason)
    return {"conversations": items, "next_cursor": more, "damaged": list(damaged)}


@router.get("/tags", responses=problems(reads=True))
async def list_tags(
    served: ServedDep, user: ProjectCaller, limit: Annotated[int, Query(ge=1, le=1000)] = 200
) -> TagList:
    """The tags of the conversations that are not archived, those of most conversations first."""
    async with served.analyst.store.reading() as tx:
        found = await listing.tags(tx, user_id=user, limit=limit)
    return {"tags": [{"tag": tag, "conversations": count} for tag, count in found]}


@router.post(
    "/conversations",
    status_code=201,
    responses=problems(AgentOff, DefinitionNotFound, ProjectNotFound, SourceError, ThreadTaken, body=True),
)
async def create(served: ServedDep, principal: PrincipalDep, rights: Rights, body: NewConversation) -> ConversationView:
    """Begin a conversation before its first question, in a `project` if one is given. An `id` makes this safe to send
    again: the second time it is taken (409). The answer is the conversation as in the list."""
    user = await acting_user(served, principal, None, body.project)
    granted = await served.analyst.runs.rights.of_caller(principal, user_id=user)
    await expect_client_id(served, user, body.id)
    thread = await served.analyst.threads.create(
        body.id,
        user_id=user,
        title=body.title,
        agent=body.agent,
        source=rights.source(body.source),
        tags=body.tags,
        metadata=body.metadata,
        rights=granted,
    )
    return await view_of(served, thread, user)


@router.patch("/conversations/{thread_id}", responses=problems(ThreadNotFound, body=True))
async def change(served: ServedDep, user: Caller, thread_id: PathSegment, body: Changes) -> ConversationView:
    """Give a conversation another label, tags, metadata, status, or a time when it expires; archive or pin it, or
    undo that. A status holds until the last run stands otherwise, or another one begins. `tags` are replaced,
    `metadata` is merged by key, where null removes a key. `label` is the title. `expires_at` (with its time zone;
    null: never), or a number of seconds from now, says when `longthread db prune` deletes it."""
    expires: datetime | Literal["never"] | None = body.expires_at
    if body.ttl_seconds is not None:
        expires = datetime.now(UTC) + timedelta(seconds=body.ttl_seconds)
    elif "expires_at" in body.model_fields_set and body.expires_at is None:
        expires = "never"
    thread = await served.analyst.threads.update(
        thread_id,
        user_id=user,
        title=body.label,
        tags=body.tags,
        metadata=body.metadata,
        status=body.status,
        expires_at=expires,
        archived=body.archived,
        pinned=body.pinned,
    )
    return await view_of(served, thread, user)


@router.delete(
    "/conversations/{thread_id}",
    status_code=204,
    responses=problems(ThreadNotFound) | {202: {"model": DeletionView, "description": "It is deleted later"}},
)
async def delete(
    served: ServedDep,
    user: Caller,
    thread_id: PathSegment,
    undo_seconds: Annotated[int, Query(ge=1, le=3600)] | None = None,
    memories: Literal["keep", "delete"] = "keep",
) -> Response:
    """Delete a conversation and everything stored of it, also a damaged one. Its run is stopped first, and its
    queue is cleared, so that no other run begins. With `undo_seconds` it is gone at once, and deleted after that
    time (202): until then it can be restored, with its queue. What was remembered from it stays, or is deleted too,
    but for what the user entered or another conversation has said. `undo_seconds` is at most 3600. A process that
    executes its run writes nothing more."""
    with_memories = memories == "delete"
    if undo_seconds is not None:
        pending = await served.analyst.deletions.begin(
            thread_id, user_id=user, seconds=undo_seconds, with_memories=with_memories
        )
        body: DeletionView = {"id": thread_id, "deletes_at": pending.at.isoformat()}
        return JSONResponse(body, status_code=202)
    with suppress(RowDamaged):
        await served.analyst.queue.clear(thread_id, user_id=user)
        await _stop(served, user, thread_id)
    await served.analyst.threads.delete(thread_id, user_id=user, with_memories=with_memories)
    served.analyst.hub.list_changed(user)
    return Response(status_code=204)


@router.post("/conversations/{thread_id}/restore", responses=problems(ThreadNotFound))
async def restore(served: ServedDep, user: Caller, thread_id: PathSegment) -> ConversationView:
    """Undo the deletion of a conversation, while there is time. Nothing is lost; its run was stopped, and can be
    resumed. 404 when it is too late."""
    await served.analyst.deletions.undo(thread_id, user_id=user)
    async with served.analyst.store.reading() as tx:
        [item] = await _items(tx, [await log.find_thread(tx, thread_id, user_id=user)], user)
        return item


@router.post("/conversations/{thread_id}/stop", responses=problems(ThreadNotFound))
async def stop(served: ServedDep, user: Caller, thread_id: PathSegment, run_id: PlainText | None = None) -> Stopped:
    """Stop the conversation's run, if it has one; its steps stay. With `run_id` only that run is stopped, and one
    that has begun after it goes on. Answers with the conversation's last run. Calls that wait are not made. A run
    of another process ends at once on PostgreSQL, and within three seconds where no signals arrive: until then the
    answer shows it as `running`. Stopping a stopped run changes nothing."""
    await _stop(served, user, thread_id, run_id)
    async with served.analyst.store.reading() as tx:
        run = await runs.last_run(tx, thread_id)
        return {"thread_id": thread_id, "run": await run_json(tx, run) if run else None}


@router.get("/chat/history", responses=problems(ThreadNotFound, EntryNotFound, CursorUnknown, reads=True))
async def chat_history(
    served: ServedDep,
    user: Caller,
    thread_id: PlainText,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: str | None = None,
    at: PlainText | None = None,
    lang: AskedLanguage = "en",
) -> History:
    """A conversation's last messages with their runs and steps; `before` of an answer gives the page before. With
    the id of an entry (`at`) they are those of the branch with that entry; the chosen branch stays. Messages come
    in whole runs. `steps` also has the calls and results of turns without a run, under the id of their question.
    `parent` is the caller's conversation, `waiting_below` what waits below. A run names its agent's version, and as
    `asked` the runs that answer its calls of other agents. `at` of the answer has the message that shows the entry,
    and whether its branch is the chosen one."""
    async with served.analyst.store.reading() as tx:
        found = await history(tx, thread_id, user_id=user, limit=limit, before=before, at=at)
    return translate_history(found, lang)


@router.get("/state", responses=problems(ThreadNotFound, reads=True))
async def state(served: ServedDep, user: Caller, thread_id: PlainText) -> StateView:
    """A conversation's state with document 000's fields."""
    return cast(StateView, await served.analyst.threads.state(thread_id, user_id=user))


async def _stop(served: Served, user: str, thread_id: str, run_id: str | None = None) -> None:
    """Stop the thread's run, if it has one. A process that executes it elsewhere obeys within seconds."""
    with suppress(NothingToStop):
        await served.analyst.runs.stop(thread_id, user_id=user, run_id=run_id)


async def view_of(served: Served, thread: Thread, user: str) -> ConversationView:
    """Return a conversation as the list has it."""
    async with served.analyst.store.reading() as tx:
        [item] = await _items(tx, [thread], user)
        return item


async def _items(tx: Transaction, threads: Sequence[Thread], user: str) -> list[ConversationView]:
    statuses = await listing.latest_runs(tx, threads, user_id=user, alive=may_be_alive)
    below = await wait_list.below(tx, user_id=user)
    ids = [thread.id for thread in threads]
    queued, sessions = await wait_list.counts(tx, ids), await attributes.statuses(tx, ids)
    others = {thread.agent_id for thread in threads if thread.agent_id not in {None, ANALYST}}
    named = {each.definition.id: each.definition.name for each in await catalog.some(tx, "agent", ids=others)}
    return [
        _item(
            thread,
            named,
            statuses.get(thread.id),
            sessions.get(thread.id, "active"),
            waiting_below=below.get(thread.id, ()),
            queued=queued.get(thread.id, 0),
        )
        for thread in threads
    ]


def _item(
    thread: Thread,
    agents: Mapping[str, str],
    status: ShownStatus | None,
    session_status: SessionStatus,
    *,
    waiting_below: Sequence[str],
    queued: int,
) -> ConversationView:
    agent, noted = thread.agent_id, attributes_json(thread)
    return {
        "id": thread.id,
        "label": thread.title or "",
        "last_active_at": thread.updated_at.isoformat(),
        "created_at": thread.created_at.isoformat(),
        "source": thread.source,
        "agent": None if agent in {None, ANALYST} else {"id": agent, "name": agents.get(str(agent))},
        "parent_id": thread.parent_id,
        "message_count": thread.entry_count,
        "tags": noted["tags"],
        "metadata": noted["metadata"],
        "expires_at": noted["expires_at"],
        "archived_at": noted["archived_at"],
        "pinned_at": noted["pinned_at"],
        "status": status,
        "session_status": session_status,
        "waiting_below": list(waiting_below),
        "queued": queued,
    }


def _excerpt(hit: listing.FoundText, wanted: str) -> str:
    """The part of a text around the first match, in plain words: an answer is Markdown."""
    wanted = " ".join(wanted.lower().split())
    near = max(0, hit.text.lower().find(wanted) - _NEAR)
    part = hit.text[near : near + 2 * _NEAR]
    line = " ".join((plain(part) if hit.role == "assistant" else part).split())
    at = max(0, line.lower().find(wanted) - EXCERPT // 4)
    return f"{'…' if at else ''}{line[at : at + EXCERPT]}{'…' if at + EXCERPT < len(line) else ''}"


_CHUNK = 2**16


class ConversationFormat(StrEnum):
    """The format of an exported conversation: the chosen branch to read, the same as data, or all that is kept."""

    MARKDOWN = "md"
    JSON = "json"
    JSONL = "jsonl"


_TYPES = {
    ConversationFormat.MARKDOWN: "text/markdown",
    ConversationFormat.JSON: "application/json",
    ConversationFormat.JSONL: "application/jsonl",
}
_TEXT = {"schema": {"type": "string"}}
_FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file",
        "content": dict.fromkeys(_TYPES.values(), _TEXT)
        | {"application/json": {"schema": {"$ref": "#/components/schemas/History"}}},
    }
}


@router.get(
    "/conversations/{thread_id}/export",
    responses=problems(ThreadNotFound, reads=True) | _FILES,
    response_class=StreamingResponse,
)
async def export(
    served: ServedDep,
    user: Caller,
    thread_id: PathSegment,
    format_: Annotated[ConversationFormat, Query(alias="format")] = ConversationFormat.MARKDOWN,
    details: bool = False,
) -> Response:
    """A conversation as a file: `md` and `json` have the chosen branch; `jsonl` has all that is kept of it and of
    those below it, for `longthread import`. `md` has questions and answers; with `details` also calls, thoughts and
    ids. `json` is as the history."""
    await audit.note_alone(served.analyst.store, "conversation.export", thread_id, format=format_.value)
    with ExitStack() as stack:
        made = stack.enter_context(tempfile.TemporaryFile())
        # One snapshot: the file holds what there was at one moment.
        async with served.analyst.store.reading() as tx:
            title = await _write(tx, thread_id, format_, made, user, details=details)
        made.seek(0)
        stack.pop_all()  # the answer closes it
    headers = {**NO_STORE, "Content-Disposition": content_disposition(title, format_, unnamed="conversation")}
    return StreamingResponse(_chunks(made), media_type=_TYPES[format_], headers=headers)


async def _write(
    tx: Transaction, thread_id: str, format_: ConversationFormat, to: BinaryIO, user: str, *, details: bool
) -> str | None:
    """Write the file. Returns the conversation's title."""
    thread = await log.find_thread(tx, thread_id, user_id=user)
    if format_ is ConversationFormat.MARKDOWN:
        entries = await log.branch(tx, thread_id, thread.tip, limit=max(1, thread.entry_count)) if thread.tip else []
        to.write((await branch_markdown(tx, thread, entries, details=details)).encode())
    elif format_ is ConversationFormat.JSON:
        whole = await history(tx, thread_id, user_id=user, limit=max(1, thread.entry_count))
        to.write(json.dumps(whole, ensure_ascii=False, indent=1).encode())
    else:
        ids = [thread_id, *await log.threads_below(tx, thread_id, user_id=user)]
        async for line in export_lines(tx, ids, _silent, {}):
            to.write(line)
    return thread.title


def _silent(done: int, total: int, what: str) -> None:
    """Ignore the progress of an export."""


async def _chunks(made: BinaryIO) -> AsyncIterator[bytes]:
    with made:
        while chunk := await asyncio.to_thread(made.read, _CHUNK):
            yield chunk
