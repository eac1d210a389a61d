"""What the span of a gateway's call tells. No contents go into it: the log has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from longthread.gateway.dialects.dialect import Reply
from longthread.gateway.http import Incoming
from longthread.gateway.request import Asked
from longthread.gateway.spending import read_usage
from longthread.gateway.upstream import Upstream
from longthread.telemetry import OFF, TRACEPARENT, TraceSpan, begin_span, describe_model, describe_usage, is_traced

_VENDORS = {"anthropic": "anthropic", "responses": "openai", "completions": "openai"}
"""Whose dialect it is: the conventions take an upstream that speaks OpenAI's for OpenAI."""


def begin_call(asked: Asked, upstream: Upstream) -> TraceSpan:
    """Begin the span of a model's request. The stream of its reply ends it."""
    if not is_traced():
        return OFF
    dialect = asked.dialect.name
    about = describe_model(f"{_VENDORS[dialect]}:", asked=asked.model, address=upstream.base_url)
    about |= {"gen_ai.request.stream": asked.streams, "longthread.upstream": upstream.name}
    return begin_span("chat", asked.model, about)


def send_within(span: TraceSpan, incoming: Incoming) -> Incoming:
    """Return a client's request as it goes up in a span: that is the parent of what the provider does."""
    if span is OFF:
        return incoming
    others = [each for each in incoming.headers if each[0] != TRACEPARENT.encode()]
    ours = [(name.encode(), value.encode()) for name, value in span.headers.items()]
    return replace(incoming, headers=[*others, *ours])


def describe_kept(thread_id: str, number: int) -> dict[str, Any]:
    """Return the attributes by which one finds what a call sent and got: `longthread view THREAD --call N` shows it."""
    return {"gen_ai.conversation.id": thread_id, "longthread.call": number}


def describe_reply(reply: Reply) -> dict[str, Any]:
    """Return the attributes of a reply that was read."""
    used = read_usage(reply.usage)
    return {
        **describe_usage(used.taken, used.given, used.cached),
        "gen_ai.response.id": reply.id,
        "gen_ai.response.model": reply.model,
    }
