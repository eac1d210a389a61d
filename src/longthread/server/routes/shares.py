"""Links by which others read a conversation, and what they then see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Self

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from longthread.access import audit
from longthread.context.forks import last_run_of
from longthread.errors import (
    CursorUnknown,
    EntryNotFound,
    InvalidInput,
    NothingToShare,
    RunInProgress,
    ShareNotFound,
    ThreadNotFound,
)
from longthread.memory.summary.digest import short
from longthread.model.catalog import MEMORY_TOOLS
from longthread.model.entry import Role
from longthread.model.run import ShownStatus
from longthread.server.answers import JsonObject, RunView, StepView, Timestamp
from longthread.server.conversation_answers import History
from longthread.server.fields import WHOLE, PathSegment, Time, decode_cursor
from longthread.server.history import history_of
from longthread.server.openapi import problems
from longthread.server.page import AskedLanguage, translate_history
from longthread.server.state import Caller, ServedDep
from longthread.store import log, runs, share_links, summaries
from longthread.store.driver import Transaction
from longthread.store.share_links import ShareLink


class ShareView(TypedDict):
    """A link to a conversation as it was at `created_at`."""

    id: str
    created_at: Timestamp
    expires_at: Timestamp | None


class ShareMade(ShareView):
    """A new link. `token` is given this once; `path` is where a browser opens it."""

    token: str
    path: str


class ShareList(TypedDict):
    shares: list[ShareView]


class SharedMessage(TypedDict):
    id: str
    role: Role
    content: str
    kind: str | None
    created_at: Timestamp
    run_id: str | None


class SharedRun(TypedDict):
    """A run that has ended. `outcome` has its answer or summary with citations and queries."""

    id: str
    status: ShownStatus
    model: str
    agent: str | None
    started_at: Timestamp
    ended_at: Timestamp | None
    outcome: JsonObject
    unfinished: str


class SharedConversation(TypedDict):
    """A conversation up to the message where it was shared, to read. `label` is its present title. `steps` is by run,
    or by question outside runs; calls that concern memory are left out. `before` is the cursor of the earlier
    messages."""

    label: str
    created_at: Timestamp
    shared_at: Timestamp
    messages: list[SharedMessage]
    runs: list[SharedRun]
    steps: dict[str, list[StepView]]
    before: str | None


router = APIRouter(prefix="/api", tags=["shares"])

_LISTS = "list_tables"
_TOLD = ("answer", "summary", "citations", "queries")
"""What a run's outcome shows to others: its errors may name files and servers."""


class ShareBody(BaseModel):
    """When a link expires: at a time, or so many seconds from now; without either, never."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"not": {"required": ["expires_at", "ttl_seconds"]}})

    expires_at: Time | None = None
    ttl_seconds: Annotated[int, Field(ge=1, le=10**9), WHOLE] | None = None

    @model_validator(mode="after")
    def _says_one(self) -> Self:
        if {"expires_at", "ttl_seconds"} <= self.model_fields_set:
            raise ValueError("give expires_at or ttl_seconds, not both")
        return self

    @property
    def moment(self) -> datetime | None:
        """When the link expires. Raises InvalidInput: that is over, or outside of the calendar."""
        now = datetime.now(UTC)
        if self.ttl_seconds is not None:
            return now + timedelta(seconds=self.ttl_seconds)
        try:
            until = None if self.expires_at is None else self.expires_at.astimezone(UTC)
        except OverflowError as error:
            raise InvalidInput(reason=f"{self.expires_at} is not a time in UTC: give a year from 1 to 9999.") from error
        if until is not None and until <= now:
            raise InvalidInput(reason=f"{until.isoformat()} is over: the link would show nothing.")
        return until


@router.post(
    "/conversations/{thread_id}/shares",
    status_code=201,
    responses=problems(NothingToShare, RunInProgress, ThreadNotFound, body=True),
)
async def share(served: ServedDep, user: Caller, thread_id: PathSegment, body: ShareBody | None = None) -> ShareMade:
    """Make a link by which anybody who reaches this server may read the conversation as it is now. It is given once:
    only a hash of it is stored."""
    until = body.moment if body is not None else None
    async with served.analyst.store.writing() as tx:
        await log.lock(tx, thread_id)
        thread = await log.find_thread(tx, thread_id, user_id=user)
        run = await runs.last_run(tx, thread_id)
        if run is not None and run.status in {"running", "waiting"}:
            raise RunInProgress(thread=thread_id, run=run.id)
        if not thread.tip:
            raise NothingToShare(thread=thread_id)
        last = await last_run_of(tx, thread)
        run_id = last.id if last is not None else None
        link, token = await share_links.create(
            tx, thread_id, user_id=user, tip=thread.tip, run_id=run_id, expires_at=until
        )
        await audit.note(tx, "share.make", thread_id, link=link.id)
    return {**_view(link), "token": token, "path": f"/s/{token}"}


@router.get("/conversations/{thread_id}/shares", responses=problems(ThreadNotFound, reads=True))
async def shares(served: ServedDep, user: Caller, thread_id: PathSegment) -> ShareList:
    """The links to a conversation that work, without their tokens."""
    async with served.analyst.store.reading() as tx:
        await log.find_thread(tx, thread_id, user_id=user)
        return {"shares": [_view(link) for link in await share_links.of_thread(tx, thread_id)]}


@router.delete(
    "/conversations/{thread_id}/shares/{share_id}", status_code=204, responses=problems(ShareNotFound, ThreadNotFound)
)
async def revoke(served: ServedDep, user: Caller, thread_id: PathSegment, share_id: PathSegment) -> Response:
    """Revoke a link: it shows nothing any more."""
    async with served.analyst.store.writing() as tx:
        await share_links.revoke(tx, thread_id, share_id, user_id=user)
        await audit.note(tx, "share.revoke", thread_id, link=share_id)
    return Response(status_code=204)


@router.get("/shared/{token}", responses=problems(CursorUnknown, ShareNotFound, reads=True))
async def shared(
    served: ServedDep,
    response: Response,
    token: PathSegment,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: str | None = None,
    lang: AskedLanguage = "en",
) -> SharedConversation:
    """What a link shows: messages, and steps with the rows that the log has. Nothing is queried for it."""
    response.headers["Cache-Control"] = "no-store"
    async with served.analyst.store.reading() as tx:
        link = await share_links.find(tx, token)
        if before is not None:
            await _check(tx, link, before)
        try:
            # Its branch is not the thread's active one if the owner went on elsewhere.
            thread = replace(await log.find_thread(tx, link.thread_id, user_id=link.user_id), tip=link.tip)
            last = await runs.find_run(tx, link.thread_id, link.run_id) if link.run_id is not None else None
            found = await history_of(tx, thread, last, limit=limit, before=before)
        except (ThreadNotFound, EntryNotFound) as error:  # about to be deleted; retention or forgetting took the tip
            raise ShareNotFound from error
    return _describe_shared(translate_history(found, lang), link)


async def _check(tx: Transaction, link: ShareLink, before: str) -> None:
    """Raise CursorUnknown for a cursor that leads out of the shared branch."""
    [seq] = decode_cursor(before, int)
    if not 0 < seq <= link.tip or not await summaries.is_behind(
        tx, link.thread_id, mark=seq, tip=link.tip, first_seq=1
    ):
        raise CursorUnknown


def _describe_shared(found: History, link: ShareLink) -> SharedConversation:
    hidden = dict(text for steps in found["steps"].values() for step in steps for text in _hide_texts(step))
    return {
        "label": found["label"],
        "created_at": found["created_at"],
        "shared_at": link.created_at.isoformat(),
        "messages": [
            SharedMessage(
                id=each["id"],
                role=each["role"],
                content=_without(each["content"], hidden) if each["kind"] == "summary" else each["content"],
                kind=each["kind"],
                created_at=each["created_at"],
                run_id=each["run_id"],
            )
            for each in found["messages"]
            if each["role"] != "system"
        ],
        "runs": [_run(each, hidden) for each in found["runs"]],
        "steps": {place: [*map(_step, filter(_is_shown, steps))] for place, steps in found["steps"].items()},
        "before": found["before"],
    }


def _run(run: RunView, hidden: Mapping[str, str]) -> SharedRun:
    outcome = {key: run["outcome"][key] for key in _TOLD if key in run["outcome"]}
    if isinstance(summary := outcome.get("summary"), str):
        outcome["summary"] = _without(summary, hidden)
    return {
        "id": run["id"],
        "status": run["status"],
        "model": run["model"],
        "agent": run["agent"]["name"] if run["agent"] is not None else None,
        "started_at": run["started_at"],
        "ended_at": run["ended_at"],
        "outcome": outcome,
        "unfinished": run["unfinished"],
    }


def _is_shown(step: StepView) -> bool:
    return step["action"] not in MEMORY_TOOLS


def _step(step: StepView) -> StepView:
    """A step, without where its source is. Why it failed, and which files could not be read, may name that, too."""
    if step["ok"] is False:
        return {**step, "observation": None}
    observation = step["observation"]
    if observation is None or not isinstance(data := observation.get("data"), dict) or step["action"] != _LISTS:
        return step
    told = {key: value for key, value in data.items() if key not in {"source", "notes"}}
    return {**step, "observation": {**observation, "data": told}}


def _hide_texts(step: StepView) -> Iterator[tuple[str, str]]:
    """What a step puts into the summary of a run that did not finish, and what others see there instead."""
    if not _is_shown(step):
        yield f"{step['action']}({short(step['args'])})", step["action"]
    if step["ok"] is False:
        error = (step["observation"] or {}).get("error")
        if isinstance(error, dict) and error.get("message"):
            yield str(error["message"]), "…"


def _without(text: str, hidden: Mapping[str, str]) -> str:
    for part in sorted(hidden, key=len, reverse=True):  # one may hold another
        text = text.replace(part, hidden[part])
    return text


def _view(link: ShareLink) -> ShareView:
    return {
        "id": link.id,
        "created_at": link.created_at.isoformat(),
        "expires_at": link.expires_at.isoformat() if link.expires_at is not None else None,
    }
