"""Results for the calls that a run leaves open when it ends: no call stays without one."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace

from longthread.model.entry import Draft, Entry, ToolCall
from longthread.model.ids import new_id
from longthread.model.run import Run
from longthread.runs.approvals import rejected
from longthread.store import approvals, runs
from longthread.store.driver import Transaction
from longthread.tools.tool import Observation


def _open_calls(window: Sequence[Entry]) -> dict[str, ToolCall]:
    calls: dict[str, ToolCall] = {}
    for entry in window:
        calls |= {call.id: call for call in entry.tool_calls}
        calls.pop(entry.tool_call_id or "", None)
    return calls


async def closing_of(
    tx: Transaction, window: Sequence[Entry], before: Run | None, run_id: str, *, by: str, why: Observation
) -> list[Draft]:
    """Return results for the calls that an unfinished run left open: from its steps, from a decision, or `why`.

    Args:
        run_id: the run that the results belong to.
        by: who ends a run that waits; its calls are never made, for `why`.
    """
    calls = _open_calls(window)
    if not calls and (before is None or before.status != "waiting"):
        return []
    steps = {step.call_id: step for step in (await runs.steps_of(tx, before) if before else [])}
    asked = await _never_made(tx, before, calls, by=by, why=why) if before else {}
    drafts: list[Draft] = []
    for call in calls.values():
        step = steps.get(call.id)
        observation = step.observation if step and step.status == "done" else asked.get(call.id)
        text = json.dumps(observation or _INTERRUPTED, ensure_ascii=False, separators=(",", ":"))
        drafts.append(Draft(id=new_id(), role="tool", text=text, tool_call_id=call.id, name=call.name, run_id=run_id))
    return drafts


async def _never_made(
    tx: Transaction, run: Run, calls: Collection[str], *, by: str, why: Observation
) -> dict[str, Observation]:
    """Return the results of calls that a person was asked about. Those of a waiting run that were not rejected are
    superseded by whoever ends it."""
    said: dict[str, Observation] = {}
    for call in await approvals.of_run(tx, run.thread_id, run.id):
        if call.decision == "reject" and call.call_id in calls:
            said[call.call_id] = rejected(call)
        elif run.status == "waiting" and (call.decision is None or call.call_id in calls):
            said[call.call_id] = why
            await approvals.decide(tx, replace(call, edited=None, message=None, by=by), "superseded")
    return said


_INTERRUPTED = {
    "ok": False,
    "error": {"type": "interrupted", "message": "The run was stopped before this call was finished."},
}
