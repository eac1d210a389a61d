"""A person lists the calls that wait for a decision, and decides: in any process, at any time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from longthread.access import audit
from longthread.errors import InvalidInput, LongthreadError, ModelUnavailable, NotPending, SourceError, ThreadNotFound
from longthread.loop_bridge import to_the_end
from longthread.messages.fields import storable
from longthread.model.run import Approval, Decision, Event, Outcome, Run
from longthread.model.thread import Thread
from longthread.runs.services.runs import Runs
from longthread.runs.services.threads import Threads
from longthread.runs.shared import RunHandle, RunServices
from longthread.runs.worker import may_be_alive
from longthread.settings import DEFAULT_USER
from longthread.store import log, run_events, runs, wait_list
from longthread.store.driver import Driver, Transaction
from longthread.store.runs import Lease
from longthread.tools.arguments import Arguments


class Approvals:
    """The calls that wait for a person's decision (tools that say `approve`)."""

    def __init__(self, services: RunServices, threads: Threads, runs: Runs) -> None:
        self._store = services.store
        self._hub = services.hub
        self._worker = services.worker
        self._threads = threads
        self._runs = runs

    async def pending(self, thread_id: str, *, user_id: str) -> list[Approval]:
        """Return the calls of a thread that wait for a decision, in their order.

        Raises:
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        async with self._store.reading() as tx:
            await log.find_thread(tx, thread_id, user_id=user_id)
            return await pending_of(tx, thread_id)

    async def waiting_below(self, thread_id: str, *, user_id: str) -> list[str]:
        """Return the threads below a thread, at any depth, with calls that wait for a decision."""
        async with self._store.reading() as tx:
            return (await wait_list.below(tx, user_id=user_id)).get(thread_id, [])

    async def why_none_waits(self, thread_id: str, *, user_id: str) -> str:
        """Say what the user can do if no call of the thread waits; empty if nothing."""
        async with self._store.reading() as tx:
            return await _advice(tx, thread_id, user_id=user_id)

    async def decide(
        self,
        thread_id: str,
        decisions: Mapping[str, Decision | Mapping[str, Any]],
        *,
        user_id: str,
        by: str | None = None,
        model: str | None = None,
        source: str | None = None,
        request: str | None = None,
    ) -> RunHandle | None:
        """Decide about calls that wait, by their ids. All decisions are stored, or none. After the last one the run
        continues here; None while other calls wait.

        Args:
            decisions: for each call a `Decision`, or `{"type": "approve"}`, `{"type": "edit", "edited_action": {"name",
                "args"}}`, `{"type": "reject", "message"?}`.
            by: who decides; by default the user.
            request: a client's name for this, which the event `decided` holds.

        Raises:
            NotPending: a call does not wait for a decision (any more).
            InvalidInput: a decision is none, or an edit's arguments do not fit the tool.
            ThreadNotFound: there is no such thread, or it is another user's.
            SourceError, ToolInvalid, ModelUnavailable: the run cannot continue here. The decisions are stored: `resume`
                it.
        """
        checked = {id_: each if isinstance(each, Decision) else Decision.of(each) for id_, each in decisions.items()}
        thread = await self._threads.find(thread_id, user_id=user_id)
        owner = await self._worker.id()
        run, lease = await _decide(self._store, thread, checked, by=by or user_id, owner=owner, request=request)
        self._hub.note_change(thread_id, run.id)
        self._hub.list_changed(user_id)
        if lease is None:
            return None
        hold = self._worker.hold(lease)
        async with AsyncExitStack() as failed:  # also when it is cancelled
            failed.push_async_callback(lambda: to_the_end(self._worker.release(hold, claimable=False)))
            try:
                handle = await self._runs.resume(thread_id, model=model, source=source, user_id=user_id, claim=hold)
            except LongthreadError as error:
                if not isinstance(error, ThreadNotFound):
                    error.args = (f"{error} {_explain_kept(thread_id, error)}",)
                raise
            failed.pop_all()
        return handle


def _explain_kept(thread_id: str, error: LongthreadError) -> str:
    option = ""
    if isinstance(error, ModelUnavailable | SourceError):
        option = " --model …" if isinstance(error, ModelUnavailable) else " --source …"
    return f"What was decided is kept: `longthread resume {thread_id}{option}` goes on with it."


async def pending_of(tx: Transaction, thread_id: str) -> list[Approval]:
    run = await runs.last_run(tx, thread_id)
    return await wait_list.pending(tx, thread_id, run.id) if run is not None and run.status == "waiting" else []


async def _advice(tx: Transaction, thread_id: str, *, user_id: str) -> str:
    run = await runs.last_run(tx, thread_id)
    if run is not None and run.status == "waiting":
        return ""
    asked = await wait_list.of_run(tx, thread_id, run.id) if run is not None and run.status == "running" else []
    if run is not None and asked and not await runs.is_held(tx, run, alive=may_be_alive):
        return f"Its run was interrupted when its process died: `longthread resume {thread_id}` goes on with it."
    below = (await wait_list.below(tx, user_id=user_id)).get(thread_id, [])
    commands = ", ".join(f"`longthread approve {each}`" for each in below)
    return f"In a conversation below it a call waits: see {commands}." if below else ""


async def _decide(
    store: Driver, thread: Thread, decisions: Mapping[str, Decision], *, by: str, owner: str, request: str | None
) -> tuple[Run, Lease | None]:
    """Store decisions, all or none. Return their run and, if no call waits any more, its lease. The process that stored
    the last decision continues the run, so that it never lacks an owner. If that process dies, another takes the run
    over.

    Raises:
        NotPending: a call does not wait.
        InvalidInput: an edit does not fit the tool, or there is no decision.
    """
    if not decisions:
        raise InvalidInput(reason="There is no decision. Give one for each call, by its id.")
    async with store.writing() as tx:
        await log.position(tx, thread.id)
        run = await runs.last_run(tx, thread.id)
        waiting = {call.call_id: call for call in await pending_of(tx, thread.id)}
        strange = next((call_id for call_id in decisions if call_id not in waiting), None)
        if run is None or strange is not None:
            hints = [await _already(tx, run, strange), await _advice(tx, thread.id, user_id=thread.user_id)]
            raise NotPending(thread=thread.id, call=str(strange)[:200], hint=" ".join(filter(None, hints)))
        made = [_apply_decision(waiting[call_id], decision, by) for call_id, decision in decisions.items()]
        for call, decision in zip(made, decisions.values(), strict=True):
            await wait_list.decide(tx, call, decision.type)
            await audit.note(tx, "approval.decide", thread.id, run=run.id, decision=decision.type)
        left = len(waiting) - len(made)
        lease = None if left else await runs.take_over(tx, run, owner=owner, alive=may_be_alive)
        await _tell(tx, run, zip(made, decisions.values(), strict=True), left, request)
    return run, lease


async def _already(tx: Transaction, run: Run | None, call_id: str | None) -> str:
    """Say what was decided about a call that no longer waits, and by whom."""
    asked = await wait_list.of_run(tx, run.thread_id, run.id) if run is not None else []
    call = next((each for each in asked if each.call_id == call_id and each.decision), None)
    if call is None or call.decision is None:
        return ""
    by = f" by user “{call.by}”" if call.by not in {None, DEFAULT_USER} else ""
    return f"It was {_DONE[call.decision]}{by} already."


_DONE: Mapping[Outcome, str] = {
    "approve": "approved",
    "edit": "approved with other arguments",
    "reject": "rejected",
    "superseded": "called off",
}


def _apply_decision(call: Approval, decision: Decision, by: str) -> Approval:
    """Return the call as it was decided. Raises ArgumentsInvalid: the tool does not take the edit."""
    message = storable(decision.message) if decision.message else None
    if decision.type != "edit":
        return replace(call, message=message, by=by)
    if decision.tool not in {None, call.tool}:
        raise InvalidInput(reason=f"An edit changes the arguments of a call. This one is of {call.tool}: reject it.")
    edited = Arguments(call.parameters, tool=call.tool).validate(storable(dict(decision.args)))
    return replace(call, edited=edited, message=message, by=by)


async def _tell(
    tx: Transaction, run: Run, made: Iterable[tuple[Approval, Decision]], left: int, request: str | None
) -> None:
    calls = []
    for call, decision in made:
        args = {} if call.edited is None else {"args": dict(call.edited)}
        said = {} if call.message is None else {"message": call.message}
        calls.append({"id": call.call_id, "tool": call.tool, "decision": decision.type, "by": call.by, **args, **said})
    number = await run_events.last_event(tx, run.thread_id, run.id) + 1
    data = {"calls": calls, "pending": left} | ({"request": request} if request else {})
    await run_events.append_events(tx, [Event(run.thread_id, run.id, number, "decided", data, datetime.now(UTC))])
