"""The request of a model call, and a smaller one if the provider says that it does not fit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from longthread.errors import SourceError, WindowTooSmall
from longthread.llm.chat import ChatModel
from longthread.llm.failures import ProviderError
from longthread.llm.models import DEMO
from longthread.llm.overflow import Overflow, overflow_of
from longthread.llm.providers import is_near, window_setting
from longthread.llm.sql_protocol import is_answering
from longthread.messages.message import Message
from longthread.model.run import Protocol
from longthread.runs.attempts import retried
from longthread.runs.budget import malformed_in_a_row
from longthread.runs.request import ChatRequest
from longthread.runs.run_context import RunContext
from longthread.runs.view_budget import reply_tokens
from longthread.runs.views import view_of
from longthread.view.budget import CEILING
from longthread.view.tokens import estimate

_MALFORMED = 2
_COUNTED, _PART = 1_500, 0.5
"""Tokens that a server counts at least, and at most which part of those sent, if it has cut the prompt in silence."""
_RAISED = 1.5
"""The factor for estimates when a provider counts more than fits, and does not say how much."""


async def compose_request(context: RunContext, model: ChatModel) -> ChatRequest:
    """Return a request with the run's next view. Raises WindowTooSmall: prompt and tools leave no room for messages."""
    if context.probing is not None:
        await _choose_protocol(context, context.probing)
    await _choose_prompt(context, model)
    context.choose_offered()
    if context.sizing is not None:
        sizing, context.sizing = context.sizing, None
        with suppress(SourceError):  # the tools tell what the source says
            if note := await sizing():
                await context.stream.publish("warning", message=note)
    was_cut, view = context.cut, view_of(context)
    if context.cut and not was_cut:
        window = f"The context window of {context.run.model}, {context.tokens:,} tokens, is too small for the prompt"
        advice = "Use a model with a larger one, or correct MEMORY_CONTEXT_WINDOW."
        await context.stream.publish("warning", message=f"{window}: its middle is left out. {advice}")
    return ChatRequest(model, context.system_prompt, view.messages, context.offered)


async def _choose_protocol(context: RunContext, probe: Callable[[], Awaitable[Protocol | None]]) -> None:
    """Use the protocol that a probe finds: this is the first run with a model of a server of one's own."""
    context.probing = None
    protocol = await probe()
    if protocol is None:
        return
    context.protocol = "auto" if protocol == "native" else protocol  # which has its fall-backs
    about = f"{context.run.model} was asked four tiny questions, once: it speaks {protocol!r} best."
    await context.stream.publish("warning", message=f"{about} `--protocol` says another.")


async def _choose_prompt(context: RunContext, model: ChatModel) -> None:
    """Read the schema that the prompt shows, and choose the prompt of the SQL protocol: the writing or the answering. A
    model that was told twice in a row that its reply is no call is asked for SQL instead, where the protocol is left to
    us."""
    if context.describing is None:
        context.protocol = "auto" if context.protocol == "sql" else context.protocol  # there is nothing to query
        return
    if context.protocol == "auto" and malformed_in_a_row(context.window.own) == _MALFORMED:
        context.protocol, context.system_prompt = "sql", ""
        context.windows.prefer(model, "sql")
        await context.stream.publish("warning", message="The model's replies are no calls: asking it for SQL.")
    if context.protocol != "sql":
        if context.schema is None and context.run.model != DEMO:
            with suppress(SourceError):  # the tools tell what the source says
                await context.describing()
        return
    if context.schema is None:
        await context.describing()
    answering = is_answering(context.window.messages)
    if answering != context.answering:
        context.answering, context.system_prompt = answering, ""


async def reply_in_window(context: RunContext, request: ChatRequest, retries: int) -> Message:
    """Return the reply to a request. If it exceeds the model's context window, shrink the view and ask again in the
    same step; the learned window is stored. Raises WindowTooSmall: nothing more can be left out."""
    assumed, told = context.tokens, None
    while True:
        cause: ProviderError | None = None
        try:
            reply = await retried(context, _bounded(context, request), retries)
        except ProviderError as error:
            overflow, cause = overflow_of(error), error
            if overflow is None:
                raise
        else:
            overflow = _cut_in_silence(context, request.model, reply)
            if overflow is None:
                break
            await context.stream.withdraw_text(context.message_id)
        told = min(told or assumed, overflow.limit or assumed)
        try:
            request = await _smaller(context, request, overflow)
        except WindowTooSmall as small:
            raise small from cause
    # A limit is stored once a call that fitted has proved it.
    window = told if told is not None and told < assumed else context.tokens
    if window < assumed:
        await context.windows.learn(request.model, window)
    else:
        context.tokens = await context.windows.settle(request.model, context.tokens)
    return reply


def _cut_in_silence(context: RunContext, model: ChatModel, reply: Message) -> Overflow | None:
    """Return the window of a server of one's own that read only a part of its prompt, and did not say so: it counts
    far fewer tokens than it was sent. None: it read all of it, as far as its count tells."""
    counted = (reply.usage_metadata or {}).get("input_tokens", 0)
    if counted < _COUNTED or not is_near(model.address):
        return None
    # Without tools and calls, which some templates leave out.
    sent = sum(estimate(str(message.text), context.family) for message in context.sent)
    if counted > _PART * min(1.0, context.factor) * sent:
        return None
    limit = 1 << (counted - 1).bit_length()  # which windows mostly are
    # A server that leaves cached tokens out of its counts has counted more before.
    return Overflow(limit, in_silence=counted) if context.counted <= limit < context.tokens else None


async def _smaller(context: RunContext, request: ChatRequest, overflow: Overflow) -> ChatRequest:
    tokens, limit = context.tokens, overflow.limit
    if limit is not None and limit < tokens:
        context.tokens = limit
        about = f"is {limit:,} tokens, and not {tokens:,}: MEMORY_CONTEXT_WINDOW={limit} says so from the start"
    elif limit is not None and context.factor < CEILING:
        # The window is known: the tokenizer counts more tokens than we estimate.
        context.factor = min(CEILING, context.factor * _RAISED)
        about = f"holds less text than was estimated: a lower MEMORY_CONTEXT_WINDOW than {tokens} leaves more room"
    else:
        context.tokens = tokens // 2
        about = f"is smaller than {tokens:,} tokens: MEMORY_CONTEXT_WINDOW says how large it is"
    context.schema, context.system_prompt = None, ""  # it has a share of the window
    smaller = await compose_request(context, request.model)
    said = f"The context window of {context.run.model} {about}. The model is shown less, and asked again."
    if overflow.in_silence:
        said = f"The server read only {overflow.in_silence:,} tokens of its prompt, and left out the rest. {said}"
    if is_near(request.model.address):
        said = f"{said} For more, raise {window_setting(context.windows.server_of(request.model.name))}."
    await context.stream.publish("warning", message=said)
    return smaller


def _bounded(context: RunContext, request: ChatRequest) -> ChatRequest:
    """Limit the reply's tokens to the room that is left: some servers refuse a reply that could be longer."""
    reserve = reply_tokens(context)
    if reserve >= context.output or request.model.max_tokens is None:
        return request
    return replace(request, options=replace(request.options, max_tokens=reserve))
