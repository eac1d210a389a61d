"""Every model call and tool call of a run is a step: durable when it is over, and published as it happens.

A reply and a result become entries of the log in the transaction that ends their step.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from longthread.builtin.chart import with_query
from longthread.errors import LongthreadError, WindowTooSmall
from longthread.llm.failures import ProviderError
from longthread.llm.models import RunModels
from longthread.messages.message import Message
from longthread.model.builtin import CHART, QUERIES
from longthread.model.fold import PARSE_ERROR, observation_of
from longthread.model.ids import new_id
from longthread.model.run import Mark, Step
from longthread.runs.approvals import ask_for, decided, gone, rejected, with_edit_note
from longthread.runs.request import ChatRequest
from longthread.runs.result_order import CallResult, Order
from longthread.runs.run_context import RunContext, is_malformed, note_of, noted
from longthread.runs.view_overflow import compose_request, reply_in_window
from longthread.runs.views import Prompt
from longthread.store import log, runs
from longthread.store.event_view import events_of_step
from longthread.tools.tool import Observation, Tool, failed
from longthread.view.budget import corrected


async def call_model(context: RunContext, models: RunModels) -> None:
    """Compose the view, ask a model, and store what it saw, said and used. All attempts are one step. Raises
    whatever the last model raised."""
    request = await compose_request(context, models.model)
    started, clock = datetime.now(UTC), time.monotonic()
    try:
        message, by_fallback = await _answered(context, models, request)
    except BaseException as error:  # also when it is cancelled: the step is stored as failed
        problem = {"ok": False, "error": {"type": type(error).__name__, "message": str(error)}}
        await _note_failure(context, started, clock, problem)
        raise
    reply = _reply(message, context.message_id, clock)
    await _note_reply(context, reply, started, clock, by_fallback=by_fallback)


async def _answered(context: RunContext, models: RunModels, request: ChatRequest) -> tuple[Message, bool]:
    """Return the reply, and whether it is the fallback's."""
    context.model = models.name
    window = context.tokens, context.factor
    try:
        return await reply_in_window(context, request, models.retries), False
    except (ProviderError, WindowTooSmall):
        if models.fallback is None:
            raise
        context.model = models.fallback_name
        if (context.tokens, context.factor) == window:
            request = replace(request, model=models.fallback)
        else:  # the first model was asked again with a smaller view, which is the one that is stored
            context.tokens, context.factor = window
            context.schema, context.system_prompt = None, ""
            request = await compose_request(context, models.fallback)
        return await reply_in_window(context, request, models.retries), True


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
    earlier = context.earlier.get(call["id"])
    try:
        if earlier is not None and earlier.status == "done" and earlier.observation is not None:
            await _note_result(context, order, CallResult(earlier.index, _result(call, earlier.observation)))
            return
        if call["name"] == CHART:
            await order.before(call["id"])
        await _run_call(context, call, maker, order, interrupted=earlier is not None)
    finally:
        order.end(call["id"])


async def _note_reply(
    context: RunContext,
    message: Message,
    started: datetime,
    clock: float,
    *,
    by_fallback: bool,
) -> None:
    prompt = Prompt.of(context)
    says_why = bool(message.tool_calls) and str(message.text).strip() and note_of(message).get("kind") != "malformed"
    async with context.stream.writing() as (tx, held):
        [entry] = await context.write(tx, held, [message])
        marks = await context.stream.reply(tx, entry, started)
        if says_why:
            marks.append(Mark.at(context.stream.number(), "thought", datetime.now(UTC), since=started))
        await prompt.save(tx, context)
        action = message.tool_calls[0]["name"] if message.tool_calls else "finish"
        usage = _usage(context, message) | ({"fallback": 1} if by_fallback else {})
        step = replace(_model_step(context, started, clock), action=action, usage=usage)
        step = replace(step, entry_seq=entry.seq, prompt=prompt.id)
        await runs.add_step(tx, context.lease, step, marks=marks, held=held)
        context.stream.add(events_of_step(replace(step, thought=entry.text, entry_id=entry.id), marks))
    context.prompts |= prompt.parts.keys()
    context.factor = corrected(context.factor, usage["estimated_tokens"], usage.get("input_tokens", 0))
    context.counted = max(context.counted, usage.get("input_tokens", 0))
    context.note([entry], [message])


async def _note_failure(context: RunContext, started: datetime, clock: float, problem: Observation) -> None:
    prompt = Prompt.of(context)
    async with context.stream.writing() as (tx, held):
        await prompt.save(tx, context)
        step = _model_step(context, started, clock)
        step = replace(step, status="failed", observation=problem, prompt=prompt.id)
        await runs.add_step(tx, context.lease, step, held=held)


def _model_step(context: RunContext, started: datetime, clock: float) -> Step:
    assert context.viewed is not None  # the view of this very call
    return Step(
        thread_id=context.lease.thread_id,
        index=0,
        run_id=context.run.id,
        kind="model",
        status="done",
        started_at=started,
        manifest=[segment.to_json() for segment in context.viewed.segments],
        elapsed_ms=_elapsed(clock),
    )


async def _run_call(
    context: RunContext, call: Mapping[str, Any], maker: Message, order: Order, *, interrupted: bool
) -> None:
    tool, approval = context.tools.get(call["name"]), decided(context, call, maker)
    refused: Observation | None = None
    if tool is not None and tool.needs_approval and approval is None:
        refused = await gone(context, tool) or ask_for(context, tool, call, maker)
        if refused is None:  # nothing starts before the person has decided
            return
    if approval is not None:
        call = {**call, "args": approval.made_with}
        refused = rejected(approval) if approval.decision == "reject" else None
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
        refused = _interrupted(tool) if interrupted else away
    observation = refused or await _observe(context, call, maker, interrupted=interrupted)
    if approval is not None and refused is None:
        observation = with_edit_note(approval, observation)
    if label and observation.get("ok"):
        observation = {**observation, "data": {"query": label, **observation["data"]}}
    category = tool.category if tool is not None and refused is None else ""
    result = CallResult(index, _result(call, observation))
    step = replace(step, observation=observation_of(str(result.message.text)), elapsed_ms=_elapsed(clock))
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
            if category and category not in context.categories:
                await log.add_tool_category(tx, context.lease.thread_id, category)
            for entry, each in zip(entries, due, strict=True):
                if each is not result or step is None:
                    await runs.refer_step(tx, context.lease.thread_id, each.step, entry.seq)
        context.note(entries, [each.message for each in due])
        context.categories |= {category}


async def _observe(context: RunContext, call: Mapping[str, Any], maker: Message, *, interrupted: bool) -> Observation:
    if call["name"] == PARSE_ERROR and is_malformed(maker):
        observation: Observation = note_of(maker)["observation"]
        return observation
    tool = context.tools.get(call["name"])
    if tool is None:
        names = f" Use one of: {', '.join(context.tools)}." if context.tools else ""
        return _error("unknown_tool", " ".join([f"There is no tool {call['name']}.{names}", *context.missing]))
    if interrupted and not tool.retry_safe:
        return _interrupted(tool)
    args = call["args"]
    if call["name"] == CHART:
        try:
            args = with_query(args, call["id"], maker, context.window.own)
        except LongthreadError as error:
            return failed(error)
    return await tool.run(args, call["id"])


def _next_label(context: RunContext, action: str) -> str | None:
    if action not in QUERIES:
        return None
    context.queries += 1
    return f"q{context.queries}"


def _reply(message: Message, message_id: str, clock: float) -> Message:
    message = noted(replace(message, id=message_id), latency_ms=_elapsed(clock))
    return message if message.tool_calls else noted(message, kind="answer")


def _usage(context: RunContext, message: Message) -> dict[str, int]:
    """Return the provider's counts, and our estimate of the prompt and the budget of its messages."""
    usage = message.usage_metadata
    told = {"input_tokens": usage["input_tokens"], "output_tokens": usage["output_tokens"]} if usage else {}
    if cached := ((usage or {}).get("input_token_details") or {}).get("cache_read"):
        told["cached_tokens"] = cached
    return {**told, "estimated_tokens": context.viewed.estimated if context.viewed else 0, "budget": context.budget}


def _elapsed(clock: float) -> int:
    return round((time.monotonic() - clock) * 1000)


def _result(call: Mapping[str, Any], observation: Mapping[str, Any]) -> Message:
    text = json.dumps(observation, ensure_ascii=False, separators=(",", ":"), default=str)
    return Message("tool", text, tool_call_id=call["id"], name=call["name"], id=new_id())


def _error(code: str, message: str) -> Observation:
    return {"ok": False, "error": {"type": code, "message": message}}


def _interrupted(tool: Tool) -> Observation:
    return _error(
        "interrupted",
        f"The process died while {tool.name} was running; it may or may not have taken effect, and is not "
        "repeated. Find out what it did before you call it again.",
    )
