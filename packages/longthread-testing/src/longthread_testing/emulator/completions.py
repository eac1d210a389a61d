"""OpenAI's chat completions on the wire: a message as one body, or as a stream of chunks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from longthread.messages.message import Message, invalid_tool_call, tool_call
from longthread.model.entry import Role
from longthread.testing.scripted import pieces, raw_calls
from longthread_testing.emulator.wire import json_bytes

CREATED = 1_700_000_000
"""The time of every completion, in Unix seconds, so that replies repeat exactly."""


def read_messages(body: Mapping[str, Any]) -> list[Message]:
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


def completion(message: Message, model: str, id: str) -> dict[str, Any]:  # noqa: A002
    """Return the body of a reply."""
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
    head = {"id": id, "object": "chat.completion", "created": CREATED, "model": model}
    return head | {"choices": [choice], "usage": _usage(message)}


def reply_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message of a reply's body."""
    message: dict[str, Any] = body["choices"][0]["message"]
    return message


def stream(body: Mapping[str, Any], *, include_usage: bool) -> Iterator[bytes]:
    """Yield the reply as the events of a stream. If asked for, the usage comes last, in a chunk without choices."""
    [choice] = body["choices"]
    head = {name: body[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    for delta in (*_deltas(choice["message"]), {}):
        finish = None if delta else choice["finish_reason"]
        yield _event(head | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]})
    if include_usage:
        yield _event(head | {"choices": [], "usage": body["usage"]})
    yield b"data: [DONE]\n\n"


def _event(chunk: Mapping[str, Any]) -> bytes:
    return b"data: " + json_bytes(chunk) + b"\n\n"


def _deltas(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for piece in pieces(message.get("reasoning_content") or ""):
        yield {"reasoning_content": piece}
    for piece in pieces(message["content"] or ""):
        yield {"content": piece}
    for index, call in enumerate(message.get("tool_calls") or ()):
        yield {"tool_calls": [{"index": index, **call, "function": {**call["function"], "arguments": ""}}]}
        for piece in pieces(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _call(identifier: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


def _finish_reason(message: Message) -> str:
    given = message.response_metadata.get("finish_reason")
    return str(given) if given else "tool_calls" if raw_calls(message) else "stop"


def _usage(message: Message) -> dict[str, Any]:
    usage = message.usage_metadata
    assert usage is not None  # the script gives every message one
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["total_tokens"],
    }
