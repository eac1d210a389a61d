"""Cancel a run that waits for a person."""

from __future__ import annotations

from longthread.context.window import spots_of
from longthread.context.window_cache import WindowCache
from longthread.errors import NothingToStop, RunElsewhere
from longthread.model.run import Run
from longthread.model.thread import Thread
from longthread.runs.approvals import called_off
from longthread.runs.close_calls import closing_of
from longthread.runs.process import may_be_alive
from longthread.runs.progress import stopped_outcome
from longthread.store import log, runs
from longthread.store.driver import Driver


async def call_off(store: Driver, thread: Thread, cache: WindowCache, *, by: str) -> Run:
    """Stop the thread's waiting run in one transaction, with a result for each open call. A concurrent decision comes
    before it or too late.

    Raises:
        NothingToStop: no run of the thread waits.
        RunElsewhere: another process executes its run.
        ThreadNotFound: the thread was deleted.
    """
    async with store.writing() as tx:
        await log.position(tx, thread.id)
        thread = await log.find_thread(tx, thread.id, user_id=thread.user_id)
        run = await runs.last_run(tx, thread.id)
        if run is None or run.status != "waiting":
            if run is not None and await runs.is_held(tx, run, alive=may_be_alive):
                raise RunElsewhere(thread=thread.id, run=run.id)
            raise NothingToStop(thread=thread.id)
        window = [spot.entry for spot in (await cache.read(tx, thread)).spots]
        drafts = await closing_of(tx, window, run, run.id, by=by, why=called_off())
        added = await log.append(tx, thread.id, drafts, tip=thread.tip, size=thread.entry_count)
        first = next((n for n, entry in enumerate(window) if entry.metadata.get("run") == run.id), 0)
        own = [spot.message for spot in spots_of([*window[first:], *added])]
        await runs.call_off(tx, run, stopped_outcome(run.question, own))
    return run
