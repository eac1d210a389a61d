"""OpenAI's chat completions on the wire: a message as one body, or as a stream of chunks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, InvalidToolCall, ToolCall, convert_to_messages
from langchain_core.messages.tool import invalid_tool_call, tool_call

from longthread.testing.scripted import pieces, raw_calls

CREATED = 1_700_000_000
"""The time that every completion bears, in Unix seconds, so that replies repeat exactly."""


def received(body: Mapping[str, Any]) -> list[BaseMessage]:
    """The messages of a request. Calls whose arguments are not JSON come through as invalid calls."""
    messages = convert_to_messages([{**each, "tool_calls": None} for each in body.get("messages") or ()])
    for message, sent in zip(messages, body.get("messages") or (), strict=True):
        if isinstance(message, AIMessage):
            message.tool_calls, message.invalid_tool_calls = _calls(sent.get("tool_calls") or ())
    return messages


def _calls(sent: Iterable[Mapping[str, Any]]) -> tuple[list[ToolCall], list[InvalidToolCall]]:
    valid: list[ToolCall] = []
    invalid: list[InvalidToolCall] = []
    for call in sent:
        name, text = call["function"]["name"], call["function"]["arguments"]
        try:
            valid.append(tool_call(name=name, args=dict(json.loads(text)), id=call["id"]))
        except (TypeError, ValueError) as error:
            invalid.append(invalid_tool_call(name=name, args=text, id=call["id"], error=str(error)))
    return valid, invalid


def completion(message: AIMessage, model: str, number: int) -> dict[str, Any]:
    """The body of a reply that is not streamed."""
    calls = [_call(*call) for call in raw_calls(message)]
    body: dict[str, Any] = {
        "role": "assistant",
        "content": str(message.text) or (None if calls else ""),
        "refusal": None,
    }
    if calls:
        body["tool_calls"] = calls
    if reasoning := message.additional_kwargs.get("reasoning_content"):
        body["reasoning_content"] = reasoning
    choice = {"index": 0, "message": body, "logprobs": None, "finish_reason": _finish_reason(message)}
    return _head(model, number, "chat.completion") | {"choices": [choice], "usage": _usage(message)}


def chunks(message: AIMessage, model: str, number: int, *, include_usage: bool) -> Iterator[dict[str, Any]]:
    """The same reply as the chunks of a stream. The usage comes last, in a chunk without choices, when asked for."""
    head = _head(model, number, "chat.completion.chunk")
    for delta in _deltas(message):
        yield head | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]}
    yield head | {"choices": [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": _finish_reason(message)}]}
    if include_usage:
        yield head | {"choices": [], "usage": _usage(message)}


def event(data: Mapping[str, Any] | str) -> bytes:
    """One server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"data: {text}\n\n".encode()


def _deltas(message: AIMessage) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for piece in pieces(message.additional_kwargs.get("reasoning_content") or ""):
        yield {"reasoning_content": piece}
    for piece in pieces(str(message.text)):
        yield {"content": piece}
    for index, (identifier, name, arguments) in enumerate(raw_calls(message)):
        yield {"tool_calls": [{"index": index, **_call(identifier, name, "")}]}
        for piece in pieces(arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _call(identifier: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


def _finish_reason(message: AIMessage) -> str:
    given = message.response_metadata.get("finish_reason")
    return str(given) if given else "tool_calls" if raw_calls(message) else "stop"


def _head(model: str, number: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": CREATED, "model": model}


def _usage(message: AIMessage) -> dict[str, Any]:
    usage = message.usage_metadata
    assert usage is not None  # the script gives every message one
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["total_tokens"],
    }
