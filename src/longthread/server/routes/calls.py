"""The calls of the model in a conversation: what each saw, and what all of them used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, cast

from fastapi import APIRouter, Query

from longthread.access.prices import find_price
from longthread.errors import CursorUnknown, EntryNotFound, ThreadNotFound
from longthread.model.entry import Entry
from longthread.model.run import Run, Step, segments_of
from longthread.runs.inspect import ModelUsage, ViewDifference, call_at, calls_before, difference, look, usage_of
from longthread.server.answers import (
    CallInfo,
    CallList,
    CallView,
    DifferenceView,
    PlacedEntry,
    SeenEntry,
    UsageOfModel,
    UsageView,
    ViewSegment,
)
from longthread.server.fields import PathSegment, PlainText, decode_cursor, encode_cursor
from longthread.server.openapi import problems
from longthread.server.routes.chat import StepIndex
from longthread.server.state import Caller, Served, ServedDep
from longthread.store import log, runs
from longthread.store.driver import Transaction
from longthread.view.items import ViewEntry


async def call_list(tx: Transaction, thread_id: str, *, limit: int, before: str | None, run_id: str | None) -> CallList:
    """The last calls of a thread, or those before a cursor; with a run all of that. Raises CursorUnknown."""
    [stop] = decode_cursor(before, int) if before else [None]
    if run_id is not None:
        run = await runs.find_run(tx, thread_id, run_id)
        found = _calls(await runs.steps_of(tx, run)) if run is not None else []
        return {"thread_id": thread_id, "calls": await _list_calls(tx, found), "before": None}
    found = await calls_before(tx, thread_id, stop, limit=limit + 1)
    more = encode_cursor(found[-limit].index) if len(found) > limit else None
    return {"thread_id": thread_id, "calls": await _list_calls(tx, found[-limit:]), "before": more}


async def call_view(tx: Transaction, thread_id: str, index: int, against: int | None) -> CallView:
    """What the call at a step saw, and how that differs from another call, by default the one before. Raises
    EntryNotFound."""
    step = await call_at(tx, thread_id, index)
    before = (await calls_before(tx, thread_id, index, limit=1))[-1:]
    seen = await look(tx, [*before, step], len(before) + 1)
    other = await call_at(tx, thread_id, against) if against is not None else next(iter(before), None)
    compared = None
    if other is not None:
        compared = difference(seen, await look(tx, [other], 1))
    seqs = {entry.seq for entry in seen.entries} | (_seqs(compared) if compared else set())
    entries = await log.entries_at(tx, thread_id, seqs)
    [call] = await _list_calls(tx, [step])
    return {
        **call,
        "thread_id": thread_id,
        "why_planned": seen.why_planned,
        "system": seen.system,
        "tools": list(seen.tools),
        "segments": [cast(ViewSegment, asdict(segment)) for segment in seen.segments],
        "entries": [_entry(each, entries) for each in seen.entries],
        "difference": _difference(other, compared, entries) if other and compared else None,
    }


def _calls(steps: Iterable[Step]) -> list[Step]:
    return [step for step in steps if segments_of(step.manifest)]


async def _list_calls(tx: Transaction, calls: Sequence[Step]) -> list[CallInfo]:
    found: list[CallInfo] = []
    of_run: dict[str, tuple[Run | None, list[int]]] = {}
    for step in calls:
        if step.run_id not in of_run:
            run = await runs.find_run(tx, step.thread_id, step.run_id)
            own = _calls(await runs.steps_of(tx, run)) if run is not None else []
            of_run[step.run_id] = run, [each.index for each in own]
        run, indexes = of_run[step.run_id]
        found.append(_call(step, run, indexes))
    return found


def _call(step: Step, run: Run | None, indexes: Sequence[int]) -> CallInfo:
    return {
        "step": step.index,
        "run_id": step.run_id,
        "number": indexes.index(step.index) + 1 if step.index in indexes else 1,
        "of": len(indexes),
        "model": run.model if run is not None else "",
        "started_at": step.started_at.isoformat(),
        "status": step.status,
        "tokens": sum(segment.tokens for segment in segments_of(step.manifest)),
        "budget": step.usage.get("budget"),
        "usage": dict(step.usage),
    }


def _entry(seen: ViewEntry, entries: Mapping[int, Entry]) -> SeenEntry:
    entry = entries.get(seen.seq) if seen.first is None and seen.count else None
    return {
        "id": entry.id if entry else None,
        "seq": seen.seq,
        "first": seen.first,
        "count": seen.count,
        "role": seen.role,
        "run_id": entry.run_id if entry else None,
        "call_id": entry.tool_call_id if entry else None,
        "how": seen.how,
        "why": seen.why,
        "tier": seen.tier,
        "tokens": seen.tokens,
        "text": seen.text,
    }


def _seqs(compared: ViewDifference) -> set[int]:
    return {*compared.entered, *compared.left, *(seq for seq, _, _ in compared.changed)}


def _difference(other: Step, compared: ViewDifference, entries: Mapping[int, Entry]) -> DifferenceView:
    def place_entry(seq: int) -> PlacedEntry:
        return {"seq": seq, "id": entries[seq].id if seq in entries else None}

    return {
        "step": other.index,
        "same_tokens": compared.same,
        "entered": [place_entry(seq) for seq in compared.entered],
        "left": [place_entry(seq) for seq in compared.left],
        "changed": [{**place_entry(seq), "was": was, "now": now} for seq, was, now in compared.changed],
    }


router = APIRouter(prefix="/api", tags=["calls"])


@router.get("/conversations/{thread_id}/calls", responses=problems(ThreadNotFound, CursorUnknown, reads=True))
async def calls(
    served: ServedDep,
    user: Caller,
    thread_id: PathSegment,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: str | None = None,
    run: PlainText | None = None,
) -> CallList:
    """The last calls of the model, or those before a cursor; with `run`, all calls of that run. They come oldest
    first; `number` counts in the run."""
    async with served.analyst.store.reading() as tx:
        await log.find_thread(tx, thread_id, user_id=user)
        return await call_list(tx, thread_id, limit=limit, before=before, run_id=run)


@router.get("/conversations/{thread_id}/calls/{index}", responses=problems(ThreadNotFound, EntryNotFound, reads=True))
async def call(
    served: ServedDep,
    user: Caller,
    thread_id: PathSegment,
    index: StepIndex,
    against: Annotated[int | None, Query(ge=0, lt=2**62)] = None,
) -> CallView:
    """What the call at this step saw: each entry, how it went in, its tokens, and why; and how that differs from
    the call before, or from the one at step `against`. Calls of the gateway and of LangGraph applications are not
    among them."""
    async with served.analyst.store.reading() as tx:
        await log.find_thread(tx, thread_id, user_id=user)
        return await call_view(tx, thread_id, index, against)


usage_router = APIRouter(prefix="/api", tags=["conversations"])


@usage_router.get("/conversations/{thread_id}/usage", responses=problems(ThreadNotFound, reads=True))
async def usage(served: ServedDep, user: Caller, thread_id: PathSegment) -> UsageView:
    """What the runs of a conversation have used, on all branches and in the conversations below it. Tokens are as
    providers counted them; of `uncounted` calls they said nothing. With `fallback` another model answered for this one.
    `cost` is null without a price."""
    async with served.analyst.store.reading() as tx:
        found = await usage_of(tx, thread_id, user_id=user)
    return {
        "thread_id": thread_id,
        "runs": found.runs,
        "tool_calls": found.tool_calls,
        "currency": served.analyst.settings.currency,
        "models": [_row(served, name, each) for name, each in sorted(found.models.items())]
        + [_row(served, name, each, fallback=True) for name, each in sorted(found.fallbacks.items())],
    }


def _row(served: Served, model: str, used: ModelUsage, *, fallback: bool = False) -> UsageOfModel:
    price = None if fallback else find_price(served.analyst.settings, model)
    return {
        "model": model,
        "fallback": fallback,
        "calls": used.calls,
        "uncounted": used.uncounted,
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cached_tokens": used.cached_tokens,
        "cost": None if price is None else used.cost(price),
    }
