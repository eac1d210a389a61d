"""Make the tool calls of a reply: each is a step, and its result an entry of the log.

A call that needs a person's decision waits for it. The vocabulary is that of LangChain's human-in-the-loop middleware.
But a run continues from the log, and decisions are in the store, for whichever process takes it over
(docs/decisions/0015).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from longthread.builtin.chart import with_query
from longthread.errors import LongthreadError
from longthread.messages.fields import storable
from longthread.messages.message import Message
from longthread.model.catalog import CHART, QUERIES
from longthread.model.fold import PARSE_ERROR, observation_of
from longthread.model.ids import new_id
from longthread.model.run import Approval, Mark, Step
from longthread.runs.run_context import RunContext, elapsed_ms, is_malformed
from longthread.runs.tracing import note_observation, trace_tool
from longthread.store import catalog, log, runs
from longthread.store.run_rows import events_of_step
from longthread.tools.arguments import Arguments
from longthread.tools.tool import Observation, Tool, make_failure


async def call_tools(context: RunContext, calls: Sequence[Mapping[str, Any]]) -> None:
    """Make the open calls of the last reply concurrently. Their results are in the order of the calls.

    Raises:
        LeaseLost, StoreError: from the first call that could not be stored. The others are cancelled.
    """
    maker = next(message for message in reversed(context.window.messages) if message.role == "assistant")
    order = Order([call["id"] for call in calls])
    try:
        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(_call_tool(context, call, maker, order))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def _call_tool(context: RunContext, call: Mapping[str, Any], maker: Message, order: Order) -> None:
    """Make one call, unless this run finished it before a crash: then it has the stored result."""
    earlier = context.calls.earlier.get(call["id"])
    try:
        if earlier is not None and earlier.status == "done" and earlier.observation is not None:
            await _note_result(context, order, CallResult(earlier.index, _result(call, earlier.observation)))
            return
        if call["name"] == CHART:
            await order.before(call["id"])
        await _run_call(context, call, maker, order, interrupted=earlier is not None)
    finally:
        order.end(call["id"])


async def _run_call(
    context: RunContext, call: Mapping[str, Any], maker: Message, order: Order, *, interrupted: bool
) -> None:
    tool, approval = context.tools.get(call["name"]), find_decision(context, call, maker)
    refused = await context.rights.refusal(tool, call["args"]) if tool is not None else None
    if tool is not None and refused is None and tool.needs_approval and approval is None:
        refused = await gone(context, tool) or ask_for(context, tool, call, maker)
        if refused is None:  # nothing starts before the person has decided
            return
    if approval is not None:
        call = {**call, "args": approval.made_with}
        refused = describe_rejection(approval) if approval.decision == "reject" else refused
    label = _next_label(context, call["name"])
    started, clock = datetime.now(UTC), time.monotonic()
    async with context.stream.writing() as (tx, held):
        await context.stream.flush_with(tx)
        marks = [Mark(context.stream.number(), "step_started", 0)]
        about = {"action": call["name"], "args": call["args"], "call_id": call["id"]}
        index = await runs.start_step(tx, context.lease, "tool", marks=marks, started_at=started, held=held, **about)
        step = Step(context.lease.thread_id, index, context.run.id, "tool", "running", started, **about)
        context.stream.add(events_of_step(step, marks))
    if tool is not None and approval is not None and refused is None and (away := await gone(context, tool)):
        refused = _describe_interruption(tool) if interrupted else away
    observation = refused
    if observation is None:
        with trace_tool(context, tool, call, index) as span:
            observation = await _observe(context, call, maker, interrupted=interrupted)
            note_observation(span, call, observation)
    if approval is not None and refused is None:
        observation = with_edit_note(approval, observation)
    if label and observation.get("ok"):
        observation = {**observation, "data": {"query": label, **observation["data"]}}
    category = tool.category if tool is not None and refused is None else ""
    result = CallResult(index, _result(call, observation))
    step = replace(step, observation=observation_of(str(result.message.text)), elapsed_ms=elapsed_ms(clock))
    await _note_result(context, order, result, step=step, category=category, marks=marks)


async def _note_result(
    context: RunContext,
    order: Order,
    result: CallResult,
    *,
    step: Step | None = None,
    category: str = "",
    marks: Sequence[Mark] = (),
) -> None:
    """Store a result as an entry; while one before it is awaited, only with its step.

    `step` is the one that the result ends; that of an earlier process has ended. `category` is that of the tool, if it
    has run. `marks` are those of the step's start.
    """
    async with order.lock:
        due = order.take(result)
        async with context.stream.writing() as (tx, held):
            entries = await context.write(tx, held, [each.message for each in due])
            if step is not None:
                told = Mark.at(context.stream.number(), "step_finished", datetime.now(UTC), since=step.started_at)
                placed = next((e.seq for e, each in zip(entries, due, strict=True) if each is result), None)
                await runs.finish_step(
                    tx,
                    context.lease,
                    result.step,
                    "done",
                    action=step.action,
                    observation=None if placed else step.observation,
                    entry_seq=placed,
                    elapsed_ms=step.elapsed_ms or 0,
                    marks=[*marks, told],
                    held=held,
                )
                context.stream.add(events_of_step(step, [told]))
            if category and category not in context.calls.categories:
                await log.add_tool_category(tx, context.lease.thread_id, category)
            for entry, each in zip(entries, due, strict=True):
                if each is not result or step is None:
                    await runs.refer_step(tx, context.lease.thread_id, each.step, entry.seq)
        context.note(entries, [each.message for each in due])
        context.calls.categories |= {category}


async def _observe(context: RunContext, call: Mapping[str, Any], maker: Message, *, interrupted: bool) -> Observation:
    if call["name"] == PARSE_ERROR and is_malformed(maker):
        observation: Observation = maker.note["observation"]
        return observation
    tool = context.tools.get(call["name"])
    if tool is None:
        names = f" Use one of: {', '.join(context.tools)}." if context.tools else ""
        return _error("unknown_tool", " ".join([f"There is no tool {call['name']}.{names}", *context.missing]))
    if interrupted and not tool.retry_safe:
        return _describe_interruption(tool)
    args = call["args"]
    if call["name"] == CHART:
        try:
            args = with_query(args, call["id"], maker, context.window.own)
        except LongthreadError as error:
            return make_failure(error)
    return await tool.run(args, call["id"])


def _next_label(context: RunContext, action: str) -> str | None:
    if action not in QUERIES:
        return None
    context.calls.queries += 1
    return f"q{context.calls.queries}"


def _result(call: Mapping[str, Any], observation: Mapping[str, Any]) -> Message:
    text = json.dumps(observation, ensure_ascii=False, separators=(",", ":"), default=str)
    return Message("tool", text, tool_call_id=call["id"], name=call["name"], id=new_id())


def _error(code: str, message: str) -> Observation:
    return {"ok": False, "error": {"type": code, "message": message}}


def _describe_interruption(tool: Tool) -> Observation:
    return _error(
        "interrupted",
        f"The process died while {tool.name} was running; it may or may not have taken effect, and is not "
        "repeated. Find out what it did before you call it again.",
    )


def find_decision(context: RunContext, call: Mapping[str, Any], maker: Message) -> Approval | None:
    """Return the decision about this very call: a call of another reply is another call, whatever its id."""
    found = context.calls.approvals.get(call["id"] or "")
    return found if found is not None and found.message_id == maker.id else None


def ask_for(context: RunContext, tool: Tool, call: Mapping[str, Any], maker: Message) -> Observation | None:
    """Ask a person about a call; the execution ends after the other calls of the message. If the tool does not take the
    arguments, return an error for the model instead."""
    try:
        args = Arguments(tool.parameters, tool=tool.name).validate(call["args"])
    except LongthreadError as error:
        return make_failure(error)
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
    context.calls.awaited[asked.call_id] = asked
    return None


async def gone(context: RunContext, tool: Tool) -> Observation | None:
    """Return what the model reads if the call's tool was deleted or disabled since the run began; else None. No person
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


def describe_rejection(call: Approval) -> Observation:
    why = f" They say: “{call.message}”" if call.message else ""
    return {
        "ok": False,
        "error": {
            "type": "rejected",
            "message": f"The user was asked, and rejected this call of {call.tool}: it was not made.{why} Do not make "
            "it again unless the user asks for it.",
        },
    }


def describe_superseded() -> Observation:
    """Return the result of a call that had no decision before the next question."""
    said = "The user was asked about this call, and said something else instead: it was not made."
    return {"ok": False, "error": {"type": "superseded", "message": said}}


def called_off() -> Observation:
    """Return the result of a call that had no decision before the run was stopped."""
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


@dataclass(frozen=True, slots=True)
class CallResult:
    """A call's result, and the index of the step that made it."""

    step: int
    message: Message


class Order:
    """The order of one reply's calls, and their results that are no entries yet. Hold the lock from `take` to the
    end of the write."""

    def __init__(self, calls: Sequence[str]) -> None:
        self.lock = asyncio.Lock()
        self._left = list(calls)
        self._ready: dict[str, CallResult] = {}
        self._over = {call: asyncio.Event() for call in calls}

    def end(self, call: str) -> None:
        """Note that a call is over: its result is stored, or it has none."""
        self._over[call].set()

    async def before(self, call: str) -> None:
        """Wait until the calls before this one in its reply are over: their results are entries then."""
        for each, over in self._over.items():
            if each == call:
                return
            await over.wait()

    def take(self, result: CallResult) -> list[CallResult]:
        """Take a result; return the results that can become entries now, in order. The others wait."""
        self._ready[str(result.message.tool_call_id)] = result
        due: list[CallResult] = []
        while self._left and self._left[0] in self._ready:
            due.append(self._ready.pop(self._left.pop(0)))
        return due
