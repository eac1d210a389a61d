"""Make one model call of a run: compose its request, ask, retry, shrink the view, and store the reply.

A call is a step: durable when it is over, and published as it happens. Its reply becomes an entry of the log in the
transaction that ends the step.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

from longthread.errors import SourceError, WindowTooSmall
from longthread.llm.chat import ChatModel
from longthread.llm.failures import Overflow, ProviderError, overflow_of
from longthread.llm.models import DEMO, RunModels, retryable
from longthread.llm.providers import is_near, window_setting
from longthread.llm.sql_protocol import is_answering
from longthread.messages.message import Message
from longthread.model.run import Mark, Protocol, Step
from longthread.runs.budgets import note_model_call
from longthread.runs.protocol import ChatRequest, attempt
from longthread.runs.run_context import RunContext, elapsed_ms, malformed_in_a_row
from longthread.runs.tracing import describe_contents, describe_reply, describe_step, trace_request
from longthread.runs.views import Prompt, reply_tokens, view_of
from longthread.store import runs
from longthread.store.run_rows import events_of_step
from longthread.tools.tool import Observation
from longthread.view.tokens import CEILING, correct_factor, estimate

_MALFORMED = 2
_COUNTED, _PART = 1_500, 0.5
"""Tokens that a server counts at least, and at most which part of those sent, if it has cut the prompt in silence."""
_RAISED = 1.5
"""The factor for estimates when a provider counts more than fits, and does not say how much."""
_LONGEST = 60.0
"""Seconds between two attempts, at most."""


async def call_model(context: RunContext, models: RunModels) -> None:
    """Compose the view, ask a model, and store what it saw, said and used. All attempts are one step. Raises
    whatever the last model raised."""
    request = await compose_request(context, models.model)
    started, clock = datetime.now(UTC), time.monotonic()
    with trace_request(context, models.name, models.model) as span:
        try:
            message, by_fallback = await _answer_request(context, models, request)
        except BaseException as error:  # also when it is cancelled: the step is stored as failed
            problem = {"ok": False, "error": {"type": type(error).__name__, "message": str(error)}}
            index = await _note_failure(context, started, clock, problem)
            span.note(describe_step(context, index))
            raise
        reply, size = _reply(message, context.reply.message_id, clock), context.view.size
        index, usage = await _note_reply(context, reply, started, clock, by_fallback=by_fallback)
        if span.is_on:
            span.note(describe_step(context, index) | describe_reply(context, reply, usage, size))
        if span.captures:
            span.note(describe_contents(context, reply))


async def _answer_request(context: RunContext, models: RunModels, request: ChatRequest) -> tuple[Message, bool]:
    """Return the reply, and whether it is the fallback's."""
    context.model.name = models.name
    window = context.model.tokens, context.model.factor
    try:
        return await reply_in_window(context, request, models.retries), False
    except (ProviderError, WindowTooSmall):
        if models.fallback is None:
            raise
        context.model.name = models.fallback_name
        if (context.model.tokens, context.model.factor) == window:
            request = replace(request, model=models.fallback)
        else:  # the first model was asked again with a smaller view, which is the one that is stored
            context.model.tokens, context.model.factor = window
            context.knowledge.schema, context.view.system_prompt = None, ""
            request = await compose_request(context, models.fallback)
        return await reply_in_window(context, request, models.retries), True


async def _note_reply(
    context: RunContext,
    message: Message,
    started: datetime,
    clock: float,
    *,
    by_fallback: bool,
) -> tuple[int, Mapping[str, int]]:
    """Store the reply with its step. Return the step's index, and the tokens that it used."""
    prompt = Prompt.of(context)
    says_why = bool(message.tool_calls) and str(message.text).strip() and message.kind != "malformed"
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
        index = await runs.add_step(tx, context.lease, step, marks=marks, held=held)
        await note_model_call(tx, context, message, usage["estimated_tokens"])
        context.stream.add(events_of_step(replace(step, thought=entry.text, entry_id=entry.id), marks))
    context.reply.prompts |= prompt.parts.keys()
    context.view.note_size()
    context.model.factor = correct_factor(context.model.factor, usage["estimated_tokens"], usage.get("input_tokens", 0))
    context.model.counted = max(context.model.counted, usage.get("input_tokens", 0))
    context.note([entry], [message])
    return index, usage


async def _note_failure(context: RunContext, started: datetime, clock: float, problem: Observation) -> int:
    """Store the step of a call without a reply, and return its index."""
    prompt = Prompt.of(context)
    async with context.stream.writing() as (tx, held):
        await prompt.save(tx, context)
        step = _model_step(context, started, clock)
        step = replace(step, status="failed", observation=problem, prompt=prompt.id)
        return await runs.add_step(tx, context.lease, step, held=held)


def _model_step(context: RunContext, started: datetime, clock: float) -> Step:
    assert context.view.viewed is not None  # the view of this very call
    return Step(
        thread_id=context.lease.thread_id,
        index=0,
        run_id=context.run.id,
        kind="model",
        status="done",
        started_at=started,
        manifest=[segment.to_json() for segment in context.view.viewed.segments],
        elapsed_ms=elapsed_ms(clock),
    )


def _reply(message: Message, message_id: str, clock: float) -> Message:
    message = replace(message, id=message_id).add_note(latency_ms=elapsed_ms(clock))
    return message if message.tool_calls else message.add_note(kind="answer")


def _usage(context: RunContext, message: Message) -> dict[str, int]:
    """Return the provider's counts, and our estimate of the prompt and the budget of its messages."""
    usage = message.usage_metadata
    told = {"input_tokens": usage["input_tokens"], "output_tokens": usage["output_tokens"]} if usage else {}
    if cached := ((usage or {}).get("input_token_details") or {}).get("cache_read"):
        told["cached_tokens"] = cached
    return {
        **told,
        "estimated_tokens": context.view.viewed.estimated if context.view.viewed else 0,
        "budget": context.view.budget,
    }


async def compose_request(context: RunContext, model: ChatModel) -> ChatRequest:
    """Return a request with the run's next view. Raises WindowTooSmall: prompt and tools leave no room for messages."""
    if context.model.probing is not None:
        await _choose_protocol(context, context.model.probing)
    await _choose_prompt(context, model)
    context.choose_offered()
    if context.model.sizing is not None:
        sizing, context.model.sizing = context.model.sizing, None
        with suppress(SourceError):  # the tools tell what the source says
            if note := await sizing():
                await context.stream.publish("warning", message=note)
    was_cut, view = context.view.is_cut, view_of(context)
    if context.view.is_cut and not was_cut:
        window = (
            f"The context window of {context.run.model}, {context.model.tokens:,} tokens, is too small for the prompt"
        )
        advice = "Use a model with a larger one, or correct MEMORY_CONTEXT_WINDOW."
        await context.stream.publish("warning", message=f"{window}: its middle is left out. {advice}")
    return ChatRequest(model, context.view.system_prompt, view.messages, context.reply.offered)


async def _choose_protocol(context: RunContext, probe: Callable[[], Awaitable[Protocol | None]]) -> None:
    """Use the protocol that a probe finds: this is the first run with a model of a server of one's own."""
    context.model.probing = None
    protocol = await probe()
    if protocol is None:
        return
    context.model.protocol = "auto" if protocol == "native" else protocol  # which has its fall-backs
    about = f"{context.run.model} was asked four tiny questions, once: it speaks {protocol!r} best."
    await context.stream.publish("warning", message=f"{about} `--protocol` says another.")


async def _choose_prompt(context: RunContext, model: ChatModel) -> None:
    """Read the schema that the prompt shows, and choose the prompt of the SQL protocol: the writing or the answering.
    If a model's reply is no valid call twice in a row, ask it for SQL instead, where the setting leaves the protocol to
    us."""
    if context.knowledge.describing is None:
        context.model.protocol = (
            "auto" if context.model.protocol == "sql" else context.model.protocol
        )  # there is nothing to query
        return
    if context.model.protocol == "auto" and malformed_in_a_row(context.window.own) == _MALFORMED:
        context.model.protocol, context.view.system_prompt = "sql", ""
        context.windows.prefer(model, "sql")
        await context.stream.publish("warning", message="The model's replies are no calls: asking it for SQL.")
    if context.model.protocol != "sql":
        if context.knowledge.schema is None and context.run.model != DEMO:
            with suppress(SourceError):  # the tools tell what the source says
                await context.knowledge.describing()
        return
    if context.knowledge.schema is None:
        await context.knowledge.describing()
    answering = is_answering(context.window.messages)
    if answering != context.reply.answering:
        context.reply.answering, context.view.system_prompt = answering, ""


async def reply_in_window(context: RunContext, request: ChatRequest, retries: int) -> Message:
    """Return the reply to a request. If it exceeds the model's context window, shrink the view and ask again in the
    same step; the learned window is stored. Raises WindowTooSmall: nothing more can be left out."""
    assumed, told = context.model.tokens, None
    while True:
        cause: ProviderError | None = None
        try:
            reply = await retry_reply(context, _limit_reply(context, request), retries)
        except ProviderError as error:
            overflow, cause = overflow_of(error), error
            if overflow is None:
                raise
        else:
            overflow = _cut_in_silence(context, request.model, reply)
            if overflow is None:
                break
            await context.stream.withdraw_text(context.reply.message_id)
        told = min(told or assumed, overflow.limit or assumed)
        try:
            request = await _smaller(context, request, overflow)
        except WindowTooSmall as small:
            raise small from cause
    # A limit is stored once a call that fitted has proved it.
    window = told if told is not None and told < assumed else context.model.tokens
    if window < assumed:
        await context.windows.learn(request.model, window)
    else:
        context.model.tokens = await context.windows.settle(request.model, context.model.tokens)
    return reply


def _cut_in_silence(context: RunContext, model: ChatModel, reply: Message) -> Overflow | None:
    """Return the window of a server of one's own that read only a part of its prompt, and did not say so: it counts
    far fewer tokens than it was sent. None: it read all of it, as far as its count tells."""
    counted = (reply.usage_metadata or {}).get("input_tokens", 0)
    if counted < _COUNTED or not is_near(model.address):
        return None
    # Without tools and calls, which some templates leave out.
    sent = sum(estimate(str(message.text), context.model.family) for message in context.reply.sent)
    if counted > _PART * min(1.0, context.model.factor) * sent:
        return None
    limit = 1 << (counted - 1).bit_length()  # which windows mostly are
    # A server that leaves cached tokens out of its counts has counted more before.
    return Overflow(limit, in_silence=counted) if context.model.counted <= limit < context.model.tokens else None


async def _smaller(context: RunContext, request: ChatRequest, overflow: Overflow) -> ChatRequest:
    tokens, limit = context.model.tokens, overflow.limit
    if limit is not None and limit < tokens:
        context.model.tokens = limit
        about = f"is {limit:,} tokens, and not {tokens:,}: MEMORY_CONTEXT_WINDOW={limit} says so from the start"
    elif limit is not None and context.model.factor < CEILING:
        # The window is known: the tokenizer counts more tokens than we estimate.
        context.model.factor = min(CEILING, context.model.factor * _RAISED)
        about = f"holds less text than was estimated: a lower MEMORY_CONTEXT_WINDOW than {tokens} leaves more room"
    else:
        context.model.tokens = tokens // 2
        about = f"is smaller than {tokens:,} tokens: MEMORY_CONTEXT_WINDOW says how large it is"
    context.knowledge.schema, context.view.system_prompt = None, ""  # it has a share of the window
    smaller = await compose_request(context, request.model)
    said = f"The context window of {context.run.model} {about}. The model is shown less, and asked again."
    if overflow.in_silence:
        said = f"The server read only {overflow.in_silence:,} tokens of its prompt, and left out the rest. {said}"
    if is_near(request.model.address):
        said = f"{said} For more, raise {window_setting(context.windows.server_of(request.model.name))}."
    await context.stream.publish("warning", message=said)
    return smaller


def _limit_reply(context: RunContext, request: ChatRequest) -> ChatRequest:
    """Limit the reply's tokens to the room that is left: some servers refuse a reply that could be longer."""
    reserve = reply_tokens(context)
    if reserve >= context.model.output or request.model.max_tokens is None:
        return request
    return replace(request, options=replace(request.options, max_tokens=reserve))


async def retry_reply(context: RunContext, request: ChatRequest, retries: int) -> Message:
    """Return the reply, after up to `retries` retries. Waits 1 s, 2 s, 4 s, …, or what the provider asks for, at
    most a minute. Raises ProviderError: the last attempt's, or the first that a retry cannot help."""
    for failed in count():
        try:
            return await attempt(context, request)
        except ProviderError as error:
            if failed >= retries or not _may_pass(error):
                raise
            asked = error.retry_after
        await asyncio.sleep(_wait(failed, asked))
    raise AssertionError


def _may_pass(error: ProviderError) -> bool:
    return retryable(error) and overflow_of(error) is None


def _wait(failed: int, asked: float | None = None) -> float:
    """Return the seconds until the next attempt: random, to spread many runs, and no fewer than the provider asks
    for, at most a minute."""
    ours = min(_LONGEST, 2.0**failed) * random.uniform(0.75, 1.25)
    return max(ours, min(_LONGEST, asked or 0.0))
