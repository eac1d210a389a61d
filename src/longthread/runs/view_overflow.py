"""The request of a model call, and a smaller one if the provider says that it does not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longthread.errors import WindowTooSmall
from longthread.llm.chat import ChatModel
from longthread.llm.failures import ProviderError
from longthread.messages.message import Message
from longthread.runs.attempts import retried
from longthread.runs.request import ChatRequest
from longthread.runs.run_context import RunContext
from longthread.runs.views import view_of
from longthread.view.budget import reply_reserve
from longthread.view.correction import CEILING

if TYPE_CHECKING:
    from longthread.llm.overflow import Overflow

_RAISED = 1.5
"""The factor for estimates when a provider counts more than fits, and does not say how much."""


async def compose_request(context: RunContext, model: ChatModel) -> ChatRequest:
    """Return a request with the run's next view. Raises WindowTooSmall: prompt and tools leave no room for messages."""
    was_cut, view = context.cut, view_of(context)
    if context.cut and not was_cut:
        window = f"The context window of {context.run.model}, {context.tokens:,} tokens, is too small for the prompt"
        advice = "Use a model with a larger one, or correct MEMORY_CONTEXT_WINDOW."
        await context.stream.publish("warning", message=f"{window}: its middle is left out. {advice}")
    return ChatRequest(model, context.system_prompt, view.messages, list(context.tools.values()))


async def reply_in_window(context: RunContext, request: ChatRequest, retries: int) -> Message:
    """Return the reply to a request. If it exceeds the model's context window, shrink the view and ask again in the
    same step; the learned window is stored. Raises WindowTooSmall: nothing more can be left out."""
    assumed, told = context.tokens, None
    while True:
        try:
            reply = await retried(context, _bounded(context, request), retries)
        except ProviderError as error:
            from longthread.llm.overflow import overflow_of  # its patterns take time to compile, and are seldom needed

            overflow = overflow_of(error)
            if overflow is None:
                raise
            told = min(told or assumed, overflow.limit or assumed)
            try:
                request = await _smaller(context, request, overflow)
            except WindowTooSmall as small:
                raise small from error
        else:
            break
    # A limit is stored once a call that fitted has proved it.
    window = told if told is not None and told < assumed else context.tokens
    if window < assumed:
        await context.windows.learn(request.model, window)
    return reply


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
    context.system_prompt = ""
    smaller = await compose_request(context, request.model)
    said = f"The context window of {context.run.model} {about}. The model is shown less, and asked again."
    await context.stream.publish("warning", message=said)
    return smaller


def _bounded(context: RunContext, request: ChatRequest) -> ChatRequest:
    """Limit the reply's tokens to the room that is left: some servers refuse a reply that could be longer."""
    fixed = int(context.fixed_tokens * context.factor)
    reserve = reply_reserve(context.tokens, output=context.output, fixed=fixed)
    if reserve >= context.output or request.model.max_tokens is None:
        return request
    return replace(request, options=replace(request.options, max_tokens=reserve))
