"""Calls that need a person's decision: what is asked, and what a decision does.

The vocabulary is that of LangChain's human-in-the-loop middleware. But a run continues from the log, and decisions are
in the store, for whichever process takes it over (docs/decisions/0015).
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
    """Return the decision about this very call: a call of another reply is another call, whatever its id."""
    found = context.approvals.get(call["id"] or "")
    return found if found is not None and found.message_id == maker.id else None


def ask_for(context: RunContext, tool: Tool, call: Mapping[str, Any], maker: Message) -> Observation | None:
    """Ask a person about a call; the execution ends after the calls beside it. Arguments that the tool does not take
    are returned as an error for the model instead."""
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
    """Return what the model reads if the call's tool was deleted or disabled since the run began; else None. Nobody
    is asked about such a call."""
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
    """Return the result of a call that nobody decided about before the next question."""
    said = "The user was asked about this call, and said something else instead: it was not made."
    return {"ok": False, "error": {"type": "superseded", "message": said}}


def called_off() -> Observation:
    """Return the result of a call that nobody decided about before the run was stopped."""
    said = "This call needed the user's decision. They stopped the run instead: it was not made."
    return {"ok": False, "error": {"type": "called_off", "message": said}}


def with_edit_note(call: Approval, observation: Observation) -> Observation:
    """Return the result of a call with what the user changed in it."""
    if call.edited is None:
        return observation
    note = (
        "The user changed the arguments before the call was made. This is its result; do not make your own call again."
    )
    return {**observation, "edited": {"args": dict(call.edited), "note": note}}
