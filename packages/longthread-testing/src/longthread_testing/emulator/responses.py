"""OpenAI's Responses on the wire: the items of a request, and the body of a reply."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from longthread.messages.message import Message, invalid_tool_call, tool_call
from longthread.model.entry import Role
from longthread.testing.scripted import raw_calls
from longthread_testing.emulator.completions import CREATED
from longthread_testing.emulator.faults import Refused

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_RESULTS = {"function_call_output": "function_call", "custom_tool_call_output": "custom_tool_call"}
_STATED: dict[str, Any] = {
    "instructions": None,
    "previous_response_id": None,
    "tool_choice": "auto",
    "truncation": "disabled",
    "parallel_tool_calls": True,
    "top_p": 1.0,
    "temperature": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "store": True,
    "background": False,
    "safety_identifier": None,
    "prompt_cache_key": None,
}
"""The fields of a response that repeat the request, and what they are without it. Source: `ResponseResource` in
`openresponses-types` 2.4."""


def items_of(given: Any) -> list[dict[str, Any]]:
    """Return the items of an input; a text is one message."""
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return [{"type": "message", **item} if "role" in item else dict(item) for item in given or ()]


def read_messages(instructions: Any, items: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Return the messages of a request: what the assistant said and called in a row is one."""
    messages = [Message("system", instructions)] if instructions else []
    for item in items:
        message = _message(item)
        if message is None:
            continue
        if message.role == "assistant" and messages and messages[-1].role == "assistant":
            before = messages.pop()
            message = replace(
                before,
                content=before.text + message.text,
                tool_calls=[*before.tool_calls, *message.tool_calls],
                invalid_tool_calls=[*before.invalid_tool_calls, *message.invalid_tool_calls],
            )
        messages.append(message)
    return messages


def _message(item: Mapping[str, Any]) -> Message | None:
    kind = item["type"]
    if kind == "message":
        role: Role = "system" if item["role"] == "developer" else item["role"]
        return Message(role, _text(item["content"]))
    if kind in _RESULTS:
        return Message("tool", _text(item["output"]), tool_call_id=item["call_id"])
    if kind not in _CALLS:
        return None
    text = item[_CALLS[kind]]
    try:
        return Message("assistant", tool_calls=[tool_call(item["name"], dict(json.loads(text)), item["call_id"])])
    except (TypeError, ValueError) as error:
        unread = invalid_tool_call(item["name"], text, item["call_id"], str(error))
        return Message("assistant", invalid_tool_calls=[unread])


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or "" for part in content or ())


def unpaired_items(items: Sequence[Mapping[str, Any]]) -> Refused | None:
    """Refuse a call without a result, or a result without a call, in the words of the Responses API."""
    open_calls: dict[str, str] = {}
    for item in items:
        if item["type"] in _CALLS:
            open_calls[item["call_id"]] = item["type"]
        elif item["type"] in _RESULTS and open_calls.pop(item["call_id"], None) is None:
            call = _RESULTS[item["type"]].replace("_", " ")
            message = f"No tool call found for {call} output with call_id {item['call_id']}."
            return Refused(400, message, param="input")
    for call_id, kind in open_calls.items():
        return Refused(400, f"No tool output found for {kind.replace('_', ' ')} {call_id}.", param="input")
    return None


def reply_items(
    message: Message,
    id: str,  # noqa: A002
    *,
    reasons: bool,
    tools: Sequence[Mapping[str, Any]] = (),
) -> list[dict[str, Any]]:
    """Return the items of a reply. A text gets reasoning before it, if the model `reasons`; blocks are as the script
    says. Reasoning has no encrypted content yet. The call of a tool in a namespace names the namespace."""
    calls, spaces = raw_calls(message), _namespaces(tools)
    phase = "commentary" if calls else "final_answer"
    items = [item for block in _blocks(message) if (item := _write_item(block, phase))]
    items += [
        {"type": "function_call", "status": "completed", "arguments": text, "call_id": call_id, "name": name}
        | ({"namespace": spaces[name]} if name in spaces else {})
        for call_id, name, text in calls
    ]
    made = [item for item in items if reasons or item["type"] != "reasoning"]
    return [{"id": f"{_PREFIXES[item['type']]}_{id}{place:02x}", **item} for place, item in enumerate(made)]


def _namespaces(tools: Sequence[Mapping[str, Any]]) -> dict[str | None, str]:
    """Return the namespace of each tool that is in one. Source: `NamespaceToolParam` in the SDK `openai` 3.57."""
    spaces = [each for each in tools if each.get("type") == "namespace"]
    return {tool["name"]: space["name"] for space in spaces for tool in space["tools"] if "name" in tool}


_PREFIXES = {"reasoning": "rs", "message": "msg", "function_call": "fc"}


def _blocks(message: Message) -> list[dict[str, Any]]:
    if not isinstance(message.content, str):
        return message.blocks
    return [{"type": "reasoning", "summary": [_REASONING]}, {"type": "text", "text": message.content}]


_REASONING = "I look at what they said."


def _write_item(block: Mapping[str, Any], phase: str) -> dict[str, Any] | None:
    if block["type"] == "reasoning":
        summary = [{"type": "summary_text", "text": text} for text in block.get("summary") or ()]
        return {"type": "reasoning", "summary": summary}
    if block["type"] != "text" or not block["text"]:
        return None
    part = {"type": "output_text", "text": block["text"], "annotations": [], "logprobs": []}
    told = block.get("phase", phase)
    return {"type": "message", "status": "completed", "role": "assistant", "content": [part], "phase": told}


def response(
    sent: Mapping[str, Any],
    message: Message,
    items: Sequence[Mapping[str, Any]],
    id: str,  # noqa: A002
) -> dict[str, Any]:
    """Return the body of a finished response. `sent` is the request as it came."""
    cut = message.response_metadata.get("finish_reason") == "length"
    stated = {name: sent[name] if sent.get(name) is not None else value for name, value in _STATED.items()}
    reasoning = sent.get("reasoning") or {}
    return {
        **stated,
        "id": id,
        "object": "response",
        "created_at": CREATED,
        "completed_at": CREATED,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "model": str(sent.get("model")),
        "output": [*items],
        "tools": [_tool(each) for each in sent.get("tools") or ()],
        "text": {"format": {"type": "text"}, "verbosity": "medium", **(sent.get("text") or {})},
        "reasoning": {"effort": reasoning.get("effort"), "summary": reasoning.get("summary")},
        "usage": usage(message),
        "service_tier": "default",
        "metadata": sent.get("metadata") or {},
    }


def usage(message: Message) -> dict[str, Any]:
    used = message.usage_metadata
    assert used is not None  # the script gives every message one
    return {
        "input_tokens": used["input_tokens"],
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": used["output_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used["total_tokens"],
    }


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    if tool.get("type") != "function":
        return dict(tool)
    return {"description": None, "parameters": None, "strict": True, **tool}


def summaries(item: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    for place, part in enumerate(item["summary"]):
        yield place, part["text"]
