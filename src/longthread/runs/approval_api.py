"""A person sees which calls wait for a decision, and decides: in any process, and whenever they like."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from longthread.errors import LongthreadError, ModelUnavailable, SourceError, ThreadNotFound
from longthread.model.approval import Approval, Decision
from longthread.model.thread import Thread
from longthread.runs.approvals import decide, instead, pending_of
from longthread.runs.events import Notifier
from longthread.runs.execute import keep_lease
from longthread.runs.handle import RunHandle
from longthread.settings import Settings
from longthread.store import approvals, log, runs
from longthread.store.driver import Driver
from longthread.store.runs import Lease


class Deciding(ABC):
    """What an analyst can do with calls of tools that say `approve`."""

    store: Driver
    settings: Settings
    bell: Notifier

    @abstractmethod
    async def thread(self, thread_id: str, *, user_id: str) -> Thread:
        """A thread's metadata."""

    @abstractmethod
    async def resume(
        self,
        thread_id: str,
        *,
        user_id: str,
        model: str | None = None,
        max_steps: int | None = None,
        source: str | None = None,
        claim: Lease | None = None,
    ) -> RunHandle:
        """Go on with a thread's unfinished run."""

    async def pending(self, thread_id: str, *, user_id: str) -> list[Approval]:
        """The calls of a thread that wait for a decision, in their order.

        Raises:
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        async with self.store.reading() as tx:
            await log.find_thread(tx, thread_id, user_id=user_id)
            return await pending_of(tx, thread_id)

    async def waiting_below(self, thread_id: str, *, user_id: str) -> list[str]:
        """The threads of agents below a thread, at whatever depth, with calls that wait for a decision."""
        async with self.store.reading() as tx:
            return (await approvals.below(tx, user_id=user_id)).get(thread_id, [])

    async def why_none_waits(self, thread_id: str, *, user_id: str) -> str:
        """What to do about a thread none of whose calls waits; empty: nothing."""
        async with self.store.reading() as tx:
            return await instead(tx, thread_id, user_id=user_id)

    async def decide(
        self,
        thread_id: str,
        decisions: Mapping[str, Decision | Mapping[str, Any]],
        *,
        user_id: str,
        by: str | None = None,
        model: str | None = None,
        source: str | None = None,
    ) -> RunHandle | None:
        """Decide about calls that wait, by their ids. All decisions are kept, or none. With the last one the run goes
        on here; None while other calls wait.

        Args:
            decisions: for each call a `Decision`, or `{"type": "approve"}`, `{"type": "edit", "edited_action": {"name",
                "args"}}`, `{"type": "reject", "message"?}`.
            by: who decides; by default the user.

        Raises:
            NotPending: a call does not wait for a decision (any more).
            InvalidInput: a decision is none, or an edit's arguments do not fit the tool.
            ThreadNotFound: there is no such thread, or it is another user's.
            SourceError, ToolInvalid, ModelUnavailable: the run cannot go on here. The decisions are kept: `resume` it.
        """
        checked = {id_: each if isinstance(each, Decision) else Decision.of(each) for id_, each in decisions.items()}
        run, lease = await decide(self.store, await self.thread(thread_id, user_id=user_id), checked, by=by or user_id)
        self.bell.ring(run.id)
        if lease is None:
            return None
        # Sources are opened and servers asked before the run is taken over: nobody else may take it meanwhile.
        beat = asyncio.ensure_future(keep_lease(self.store, lease))
        try:
            return await self.resume(thread_id, model=model, source=source, user_id=user_id, claim=lease)
        except BaseException as error:
            with suppress(LongthreadError):  # the lease runs out by itself, too
                async with self.store.writing() as tx:
                    await runs.give_back(tx, lease)
            if isinstance(error, LongthreadError) and not isinstance(error, ThreadNotFound):
                error.args = (f"{error} {_kept(thread_id, error)}",)
            raise
        finally:
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)  # the lease is the run's own by now


def _kept(thread_id: str, error: LongthreadError) -> str:
    """What there is to do when a run could not go on after a decision."""
    option = ""
    if isinstance(error, ModelUnavailable | SourceError):
        option = " --model …" if isinstance(error, ModelUnavailable) else " --source …"
    return f"What was decided is kept: `longthread resume {thread_id}{option}` goes on with it."
