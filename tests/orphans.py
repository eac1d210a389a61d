"""Whether a request could be sent to a provider: each call is followed by its result, each result has its call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage


def orphans(messages: Sequence[BaseMessage]) -> Iterator[str]:
    """What is wrong with the calls and results of a request."""
    open_calls: set[str | None] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in open_calls:
                yield f"a result without its call: {message.tool_call_id}"
            open_calls.discard(message.tool_call_id)
            continue
        if open_calls:
            yield f"calls without results: {sorted(map(str, open_calls))}"
        open_calls = {call["id"] for call in message.tool_calls} if isinstance(message, AIMessage) else set()
    if open_calls:
        yield f"calls without results at the end: {sorted(map(str, open_calls))}"
