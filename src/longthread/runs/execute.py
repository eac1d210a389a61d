"""Execute a run, and end it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

from longthread.context.source_facts import KnownFacts, keep
from longthread.errors import LeaseLost, LongthreadError, ModelFailed, RunTimeUp, StoreDisconnected, StoreError
from longthread.llm.models import RunModels, failure_reason
from longthread.loop_bridge import to_the_end
from longthread.metrics import RUNS
from longthread.model.fold import facts_of
from longthread.model.run import RunStatus
from longthread.runs.loop import drive
from longthread.runs.outcome import is_over, outcome_of, stopped_outcome
from longthread.runs.run_context import RunContext
from longthread.runs.workers.stop import end_stopped, interrupted_draft, stop_answers
from longthread.store.driver import Transaction
from longthread.store.runs import LeaseCheck

_logger = logging.getLogger(__name__)


async def execute(context: RunContext, models: RunModels, known: KnownFacts, *, user_id: str) -> RunStatus:
    """Run the agent until the run ends, waits for a person, or stays `running` because the worker drains. If it is
    cancelled, `user_id` has stopped it.

    Raises:
        LeaseLost: the run is no longer this worker's.
        StoreDisconnected: it ends here without an end. A worker goes on with it when the store is back.
    """
    began, left = perf_counter(), "lost"
    _log(context, "run begins", attempt=context.lease.attempt)
    try:
        status = await _until_left(context, models, known, user_id)
        left = "given_back" if status == "running" else status
        return status
    except asyncio.CancelledError:
        left = "paused"
        raise
    finally:
        seconds = perf_counter() - began
        RUNS.note(left, seconds=seconds)
        _log(context, "run ends", status=left, ms=round(1000 * seconds, 1))


def _log(context: RunContext, event: str, **fields: Any) -> None:
    ids = {"thread_id": context.lease.thread_id, "run_id": context.lease.run_id}
    _logger.info(event, extra={"fields": {**ids, **fields}})


async def _until_left(context: RunContext, models: RunModels, known: KnownFacts, user_id: str) -> RunStatus:
    hold, work = context.hold, asyncio.ensure_future(_work(context, models))
    try:
        either: set[asyncio.Future[Any]] = {hold.lost, work}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            hold.expect()
        status, outcome = await work
    except asyncio.CancelledError:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        hold.expect()
        outcome = stopped_outcome(context.run.question, context.window.own)
        await to_the_end(_end(context, known, "paused", outcome, stopped_by=user_id))
        raise
    if status == "running":
        return status
    if status == "waiting":
        return await to_the_end(_wait(context))
    await to_the_end(_end(context, known, status, outcome))
    return status


async def _in_time(context: RunContext, models: RunModels) -> bool:
    """Drive the run. Raises RunTimeUp: it took too long. What it did is stored."""
    seconds = context.settings.run_timeout
    try:
        async with asyncio.timeout(seconds) as clock:
            return await drive(context, models)
    except TimeoutError:
        if not clock.expired():
            raise
        raise RunTimeUp(seconds=f"{seconds:g}") from None


async def _wait(context: RunContext) -> RunStatus:
    """Let the run wait for a person, or end it if it was stopped meanwhile. If that cannot be stored, the run fails."""
    try:
        waits = await context.stream.wait(list(context.calls.awaited.values()), partial(_call_off, context))
    except (LeaseLost, StoreDisconnected):
        raise
    except (StoreError, ValueError, TypeError) as error:
        problem = {"type": "store_error", "message": f"What is to be approved could not be stored: {error}"}
        await context.stream.end("failed", {"error": problem})
        return "failed"
    return "waiting" if waits else "paused"


async def _call_off(context: RunContext, tx: Transaction, held: LeaseCheck) -> None:
    """End a run that was stopped just before it waits: its calls are called off, as by a stop just after."""
    assert held.stop_by is not None
    run, window = replace(context.run, status="waiting"), [spot.entry for spot in context.window.spots]
    await end_stopped(tx, run, window, tip=held.tip, size=held.size, by=held.stop_by)


async def _end(
    context: RunContext,
    known: KnownFacts,
    status: RunStatus,
    outcome: Mapping[str, Any],
    *,
    stopped_by: str | None = None,
) -> None:
    """Store the run's end. If its outcome cannot be stored, the run fails: a run without an end blocks its thread."""
    last = context.window.spots[-1].entry
    text, message_id = context.stream.unfinished
    left = interrupted_draft(text, context.run.id, message_id)
    if left is not None:
        outcome = {**outcome, "unfinished": text, "message_id": left.id}
    said = last if last.id == outcome.get("message_id") else None

    async def also(tx: Transaction) -> None:
        await _keep_facts(context, known, tx)
        if stopped_by is not None:
            await stop_answers(tx, context.run, by=stopped_by)

    try:
        await context.stream.end(status, outcome, said=said, left=left, also=also)
    except (LeaseLost, StoreDisconnected):
        raise
    except (StoreError, ValueError, TypeError) as error:
        problem = {"type": "store_error", "message": f"The run's end could not be stored: {type(error).__name__}."}
        await context.stream.end("failed", {"error": problem})


async def _keep_facts(context: RunContext, known: KnownFacts, tx: Transaction) -> None:
    """Store what the run's entries say of the source, for the next run. Not while a call has no result: a later
    result would be folded without its call."""
    entries = [spot.entry for spot in context.window.own_spots]
    calls = {call.id for entry in entries for call in entry.tool_calls}
    if calls <= {entry.tool_call_id for entry in entries}:
        tip = context.window.spots[-1].entry.seq
        await keep(tx, context.lease.thread_id, tip, facts_of(known.facts, entries), kept=known.kept)


async def _work(context: RunContext, models: RunModels) -> tuple[RunStatus, dict[str, Any]]:
    try:
        for note in context.source_notes:
            await context.stream.publish("warning", message=note)
        if not is_over(context.window.messages):
            context.knowledge.memories = (
                await context.knowledge.fitting() if context.knowledge.fitting is not None else ()
            )
            context.knowledge.terms = (
                await context.knowledge.teaching() if context.knowledge.teaching is not None else ()
            )
            if not await _in_time(context, models):
                return "running", {}
        return ("waiting", {}) if context.calls.awaited else outcome_of(context)
    except (LeaseLost, StoreDisconnected):
        raise
    except LongthreadError as error:
        return "failed", {"error": error.described()}
    except Exception as error:  # noqa: BLE001 - a run's boundary: any failure is stored, and the thread stays usable
        reason = failure_reason(error, context.settings, context.own_settings)
        problem = ModelFailed(model=context.model.name, reason=reason, thread=context.lease.thread_id)
        return "failed", {"error": {**problem.described(), "cause": type(error).__name__}}
