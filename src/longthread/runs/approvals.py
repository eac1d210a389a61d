"""Calls that are made only when a person has decided: what is asked, and what the decisions do.

The vocabulary is that of LangChain's human-in-the-loop middleware. But a run goes on from the log, and decisions are in
the store, for whichever process takes it up (docs/decisions/0015).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from longthread.errors import LongthreadError
from longthread.messages.message import Message
from longthread.messages.sanitize import storable
from longthread.model.approval import Approval
from longthread.runs.run_context import RunContext
from longthread.store import catalog
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
