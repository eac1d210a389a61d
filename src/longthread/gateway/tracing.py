"""What the span of a gateway's call tells. No contents go into it: the log has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from longthread.gateway.dialects.dialect import Reply
from longthread.gateway.http import Incoming
from longthread.gateway.request import Asked
from longthread.gateway.upstream import Upstream
from longthread.telemetry import OFF, TRACEPARENT, TraceSpan, begin_span, describe_model, describe_usage, is_traced

_APART = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
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
    usage = reply.usage
    taken, given = usage.get("input_tokens", usage.get("prompt_tokens")), usage.get("output_tokens")
    cached = usage.get("cache_read_input_tokens")
    if cached is not None or usage.get("cache_creation_input_tokens") is not None:  # Anthropic's, which count apart
        taken = sum(_count(usage, name) for name in _APART)
    else:
        details = usage.get("input_tokens_details") or usage.get("prompt_tokens_details") or {}
        cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    return {
        **describe_usage(taken, usage.get("completion_tokens") if given is None else given, cached),
        "gen_ai.response.id": reply.id,
        "gen_ai.response.model": reply.model,
    }


def _count(usage: Mapping[str, Any], name: str) -> int:
    found = usage.get(name)
    return found if isinstance(found, int) else 0
