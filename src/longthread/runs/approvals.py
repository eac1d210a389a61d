"""Calls that are made only when a person has decided: what is asked, and what the decisions do.

The vocabulary is that of LangChain's human-in-the-loop middleware. But a run goes on from the log, and decisions are in
the store, for whichever process takes it up (docs/decisions/0015).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from longthread.errors import InvalidInput, LongthreadError, NotPending
from longthread.messages.message import Message
from longthread.messages.sanitize import storable
from longthread.model.approval import Approval, Decision, Outcome
from longthread.model.event import Event
from longthread.model.run import Run
from longthread.model.thread import Thread
from longthread.runs.process import may_be_alive, new_owner
from longthread.runs.run_context import RunContext
from longthread.settings import DEFAULT_USER
from longthread.store import approvals, catalog, log, runs
from longthread.store.driver import Driver, Transaction
from longthread.store.runs import Lease
from longthread.tools.arguments import Arguments
from longthread.tools.tool import Observation, Tool, failed


def decided(context: RunContext, call: Mapping[str, Any], maker: Message) -> Approval | None:
    """What a person has decided about this very call: another reply's is another call, whatever its id."""
    found = context.approvals.get(call["id"] or "")
    return found if found is not None and found.message_id == maker.id else None


def ask_for(context: RunContext, tool: Tool, call: Mapping[str, Any], maker: Message) -> Observation | None:
    """Ask a person about a call, which ends the execution when the calls beside it are done. Nobody is asked about a
    call whose arguments the tool does not take: the model is told that, and it is returned."""
    try:
        args = Arguments(tool.parameters, tool=tool.name).checked(call["args"])
    except LongthreadError as error:
        return failed(error)
    asked = Approval(
        thread_id=context.lease.thread_id,
        run_id=context.run.id,
        message_id=str(maker.id),
        call_id=str(call["id"]),
        place=next(n for n, each in enumerate(maker.tool_calls) if each["id"] == call["id"]),
        tool=tool.name,
        description=storable(tool.description),
        args=args,
        parameters=storable(dict(tool.parameters)),
        asked_at=datetime.now(UTC),
    )
    context.asked[asked.call_id] = asked
    return None


async def gone(context: RunContext, tool: Tool) -> Observation | None:
    """What a model is told of a call whose tool has been deleted or switched off since the run began; else None. What
    somebody took away while a call waited is not used for it, and nobody is asked about it."""
    if tool.definition is None:
        return None
    async with context.store.reading() as tx:
        found = await catalog.some(tx, "tool", ids=[tool.definition])
    if any(each.definition.is_active for each in found):
        return None
    why = "was switched off" if found else "was deleted"
    said = f"The tool {tool.name} is no longer there: it {why} after this call was begun. The call was not made. Do "
    return {"ok": False, "error": {"type": "tool_gone", "message": f"{said}without it, or tell the user."}}


def rejected(call: Approval) -> Observation:
    """What a model is told of a call that was not made."""
    why = f" They say: “{call.message}”" if call.message else ""
    return {
        "ok": False,
        "error": {
            "type": "rejected",
            "message": f"The user was asked, and rejected this call of {call.tool}: it was not made.{why} Do not make "
            "it again unless the user asks for it.",
        },
    }


def superseded() -> Observation:
    """What a model is told of a call that nobody decided about before something else was asked."""
    said = "The user was asked about this call, and said something else instead: it was not made."
    return {"ok": False, "error": {"type": "superseded", "message": said}}


def called_off() -> Observation:
    """What a model is told of a call that nobody decided about before the run was stopped."""
    said = "The user was asked about this call, and stopped the run instead: it was not made."
    return {"ok": False, "error": {"type": "called_off", "message": said}}


def told_of_edit(call: Approval, observation: Observation) -> Observation:
    """The result of a call, with what the user changed of it."""
    if call.edited is None:
        return observation
    note = (
        "The user changed the arguments before the call was made. This is its result; do not make your own call again."
    )
    return {**observation, "edited": {"args": dict(call.edited), "note": note}}


async def pending_of(tx: Transaction, thread_id: str) -> list[Approval]:
    """The calls of a thread that wait for a decision."""
    run = await runs.last_run(tx, thread_id)
    return await approvals.pending(tx, thread_id, run.id) if run is not None and run.status == "waiting" else []


async def instead(tx: Transaction, thread_id: str, *, user_id: str) -> str:
    """What there is to do about a thread none of whose calls waits; empty: nothing."""
    run = await runs.last_run(tx, thread_id)
    if run is not None and run.status == "waiting":
        return ""
    asked = await approvals.of_run(tx, thread_id, run.id) if run is not None and run.status == "running" else []
    if run is not None and asked and not await runs.is_held(tx, run, alive=may_be_alive):
        return f"Its run was interrupted when its process died: `longthread resume {thread_id}` goes on with it."
    below = (await approvals.below(tx, user_id=user_id)).get(thread_id, [])
    commands = ", ".join(f"`longthread approve {each}`" for each in below)
    return f"In a conversation below it a call waits: see {commands}." if below else ""


async def decide(
    store: Driver, thread: Thread, decisions: Mapping[str, Decision], *, by: str
) -> tuple[Run, Lease | None]:
    """Keep decisions, all or none; the run that they are about and, when it waits for none any more, its lease: who has
    decided last goes on with it, and nobody sees it without an owner meanwhile. If that process dies, it is taken over.

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
            hints = [await _already(tx, run, strange), await instead(tx, thread.id, user_id=thread.user_id)]
            raise NotPending(thread=thread.id, call=str(strange)[:200], hint=" ".join(filter(None, hints)))
        made = [_made(waiting[call_id], decision, by) for call_id, decision in decisions.items()]
        for call, decision in zip(made, decisions.values(), strict=True):
            await approvals.decide(tx, call, decision.type)
        left = len(waiting) - len(made)
        lease = None if left else await runs.take_over(tx, run, owner=new_owner(), alive=may_be_alive)
        await _tell(tx, run, zip(made, decisions.values(), strict=True), left)
    return run, lease


async def _already(tx: Transaction, run: Run | None, call_id: str | None) -> str:
    """What has become of a call that waits no more, and by whom: somebody else was faster."""
    asked = await approvals.of_run(tx, run.thread_id, run.id) if run is not None else []
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


def _made(call: Approval, decision: Decision, by: str) -> Approval:
    """The call as it was decided. Raises ArgumentsInvalid, for an edit that the tool does not take."""
    message = storable(decision.message) if decision.message else None
    if decision.type != "edit":
        return replace(call, message=message, by=by)
    if decision.tool not in {None, call.tool}:
        raise InvalidInput(reason=f"An edit changes the arguments of a call. This one is of {call.tool}: reject it.")
    edited = Arguments(call.parameters, tool=call.tool).checked(storable(dict(decision.args)))
    return replace(call, edited=edited, message=message, by=by)


async def _tell(tx: Transaction, run: Run, made: Iterable[tuple[Approval, Decision]], left: int) -> None:
    calls = []
    for call, decision in made:
        args = {} if call.edited is None else {"args": dict(call.edited)}
        said = {} if call.message is None else {"message": call.message}
        calls.append({"id": call.call_id, "tool": call.tool, "decision": decision.type, "by": call.by, **args, **said})
    number = await runs.last_event(tx, run.thread_id, run.id) + 1
    data = {"calls": calls, "pending": left}
    await runs.append_events(tx, [Event(run.thread_id, run.id, number, "decided", data, datetime.now(UTC))])
