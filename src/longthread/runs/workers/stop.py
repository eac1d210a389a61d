"""End a run that this process does not execute: somebody stopped it, or nobody can go on with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from longthread.context.window import spots_of
from longthread.context.window_cache import WindowCache
from longthread.errors import NothingToStop
from longthread.model.entry import Entry
from longthread.model.run import Run, start_of
from longthread.model.thread import Thread
from longthread.runs.approvals import called_off
from longthread.runs.close_calls import closing_of
from longthread.runs.interrupted import interrupted_of
from longthread.runs.process import may_be_alive
from longthread.runs.progress import stopped_outcome
from longthread.store import log, runs
from longthread.store.driver import Driver, Transaction
from longthread.store.runs import Lease


async def stop_run(
    store: Driver, thread: Thread, run_id: str, cache: WindowCache, *, by: str, claimed: Lease | None = None
) -> Run | None:
    """Stop a run of the thread in one transaction. If a worker executes it, that one is to obey. Otherwise (it waits
    for a person, its worker died, or it was `claimed` to be stopped) it ends here, with a result for each open call.
    A concurrent decision comes before it or too late. Return the run if it has ended here.

    Raises:
        NothingToStop: the run has ended, or there is none.
        ThreadNotFound: the thread was deleted.
        LeaseLost: the claimed run is another worker's now.
    """
    async with store.writing() as tx:
        await log.position(tx, thread.id)
        thread = await log.find_thread(tx, thread.id, user_id=thread.user_id)
        if claimed is not None:
            await runs.check(tx, claimed)
        run = await runs.last_run(tx, thread.id)
        if run is None or run.id != run_id or run.status not in {"running", "waiting"}:
            raise NothingToStop(thread=thread.id)
        if claimed is None and await runs.is_held(tx, run, alive=may_be_alive):
            await runs.request_stop(tx, run, by=by)
            return None
        window = [spot.entry for spot in (await cache.read(tx, thread)).spots]
        await end_stopped(tx, run, window, tip=thread.tip, size=thread.entry_count, by=by)
    return run


async def end_stopped(tx: Transaction, run: Run, window: Sequence[Entry], *, tip: int, size: int, by: str) -> None:
    """End a stopped run that nobody executes, with a result for each open call. The caller has locked its thread, which
    has this `tip` and `size`; `window` are the thread's entries from the run's question on, or more."""
    drafts = await closing_of(tx, window, run, run.id, by=by, why=called_off())
    left = await interrupted_of(tx, run) if run.status == "running" else None
    drafts += [left] if left is not None else []
    added = await log.append(tx, run.thread_id, drafts, tip=tip, size=size)
    first = start_of(window, run) or 0
    own = [spot.message for spot in spots_of([*window[first:], *added])]
    await runs.call_off(tx, run, stopped_outcome(run.question, own), added[-1] if left is not None else None)
    await stop_answers(tx, run, by=by)


async def stop_answers(tx: Transaction, run: Run, *, by: str) -> None:
    """Store that the runs of other agents that answer this one's calls are stopped: nobody waits for them any more.
    The caller has locked the run's thread."""
    for below in await runs.answers(tx, run.thread_id, run.id):
        if below.status == "running":
            await runs.request_stop(tx, below, by=by)


async def fail_run(store: Driver, lease: Lease, outcome: Mapping[str, Any]) -> None:
    """End a claimed run as failed. Raises `LeaseLost`: it is another worker's now, or was deleted."""
    async with store.writing() as tx:
        held = await runs.check(tx, lease)
        last = await runs.last_event(tx, lease.thread_id, lease.run_id)
        run, said = await runs.find_run(tx, lease.thread_id, lease.run_id), None
        if run is not None and (left := await interrupted_of(tx, run)) is not None:
            [said] = await log.append(tx, lease.thread_id, [left], tip=held.tip, size=held.size, goes_on=True)
            outcome = {**outcome, "unfinished": left.text, "message_id": left.id}
        await runs.end(tx, lease, "failed", outcome, said=said, event=last + 1, held=held)
