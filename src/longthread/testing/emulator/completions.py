"""OpenAI's chat completions on the wire: a message as one body, or as a stream of chunks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from longthread.messages.message import Message, invalid_tool_call, tool_call
from longthread.model.entry import Role
from longthread.testing.scripted import pieces, raw_calls

CREATED = 1_700_000_000
"""The time of every completion, in Unix seconds, so that replies repeat exactly."""


def received(body: Mapping[str, Any]) -> list[Message]:
    """Return the messages of a request. Calls whose arguments are not JSON become invalid calls."""
    return [_message(each) for each in body.get("messages") or ()]


def _message(sent: Mapping[str, Any]) -> Message:
    role: Role = "system" if sent["role"] == "developer" else sent["role"]
    calls, unread = _calls(sent.get("tool_calls") or ())
    beside = {"reasoning_content": sent["reasoning_content"]} if sent.get("reasoning_content") else {}
    return Message(
        role,
        sent.get("content") or "",
        additional_kwargs=beside,
        name=sent.get("name"),
        tool_calls=calls,
        invalid_tool_calls=unread,
        tool_call_id=sent.get("tool_call_id"),
    )


def _calls(sent: Iterable[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    valid, invalid = [], []
    for call in sent:
        name, text = call["function"]["name"], call["function"]["arguments"]
        try:
            valid.append(tool_call(name, dict(json.loads(text)), call["id"]))
        except (TypeError, ValueError) as error:
            invalid.append(invalid_tool_call(name, text, call["id"], str(error)))
    return valid, invalid


def completion(message: Message, model: str, number: int) -> dict[str, Any]:
    calls = [_call(*call) for call in raw_calls(message)]
    body: dict[str, Any] = {
        "role": "assistant",
        "content": message.text or (None if calls else ""),
        "refusal": None,
    }
    if calls:
        body["tool_calls"] = calls
    if reasoning := message.additional_kwargs.get("reasoning_content"):
        body["reasoning_content"] = reasoning
    choice = {"index": 0, "message": body, "logprobs": None, "finish_reason": _finish_reason(message)}
    return _head(model, number, "chat.completion") | {"choices": [choice], "usage": _usage(message)}


def chunks(message: Message, model: str, number: int, *, include_usage: bool) -> Iterator[dict[str, Any]]:
    """Yield the reply as the chunks of a stream. If asked for, the usage comes last, in a chunk without choices."""
    head = _head(model, number, "chat.completion.chunk")
    for delta in _deltas(message):
        yield head | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]}
    yield head | {"choices": [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": _finish_reason(message)}]}
    if include_usage:
        yield head | {"choices": [], "usage": _usage(message)}


def stream(message: Message, model: str, number: int, *, include_usage: bool) -> Iterator[bytes]:
    for chunk in chunks(message, model, number, include_usage=include_usage):
        yield f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()
    yield b"data: [DONE]\n\n"


def _deltas(message: Message) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for piece in pieces(message.additional_kwargs.get("reasoning_content") or ""):
        yield {"reasoning_content": piece}
    for piece in pieces(message.text):
        yield {"content": piece}
    for index, (identifier, name, arguments) in enumerate(raw_calls(message)):
        yield {"tool_calls": [{"index": index, **_call(identifier, name, "")}]}
        for piece in pieces(arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _call(identifier: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


def _finish_reason(message: Message) -> str:
    given = message.response_metadata.get("finish_reason")
    return str(given) if given else "tool_calls" if raw_calls(message) else "stop"


def _head(model: str, number: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": CREATED, "model": model}


def _usage(message: Message) -> dict[str, Any]:
    usage = message.usage_metadata
    assert usage is not None  # the script gives every message one
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["total_tokens"],
    }
