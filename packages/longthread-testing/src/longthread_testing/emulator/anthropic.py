"""Anthropic's Messages on the wire: the messages of a request, a reply as one body or as the events of a stream."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from longthread.messages.message import Content, Message, tool_call
from longthread.testing.scripted import pieces, raw_calls
from longthread_testing.emulator.faults import Refused
from longthread_testing.emulator.thinking import HIDDEN, blocks_of
from longthread_testing.emulator.wire import json_bytes

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_STREAMED = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking")}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def read_messages(body: Mapping[str, Any]) -> list[Message]:
    """Return the messages of a request, its prompt first, and each result as a message of its own."""
    prompt = [Message("system", body["system"])] if body.get("system") else []
    return [*prompt, *(message for each in body.get("messages") or () for message in _messages(each))]


def _messages(sent: Mapping[str, Any]) -> Iterator[Message]:
    blocks = blocks_of(sent.get("content"))
    if sent["role"] == "system":  # in the midst of a conversation, as Claude Code sends them
        yield Message("system", [*blocks])
        return
    if sent["role"] == "assistant":
        calls = [tool_call(each["name"], each["input"], each["id"]) for each in blocks if each["type"] == "tool_use"]
        yield Message("assistant", [*blocks], tool_calls=calls)
        return
    rest: Content = [each for each in blocks if each["type"] != "tool_result"]
    for each in blocks:
        if each["type"] == "tool_result":
            yield Message("tool", each.get("content") or "", tool_call_id=each["tool_use_id"])
    if rest:
        yield Message("user", rest)


def refused_block(body: Mapping[str, Any]) -> Refused | None:
    """Refuse a block that the API cannot read."""
    for number, message in enumerate(body.get("messages") or ()):
        content = message.get("content")
        for place, block in enumerate(content if isinstance(content, list) else ()):
            if problem := _problem(block):
                return Refused(400, f"messages.{number}.content.{place}{problem}")
    return None


def _problem(block: Mapping[str, Any]) -> str:
    if block["type"] == "text" and not block["text"].strip():
        return ": text content blocks must contain non-whitespace text"
    if block["type"] == "thinking":
        missing = [name for name in ("signature", "thinking") if not isinstance(block.get(name), str)]
        return f".thinking.{missing[0]}: Field required" if missing else ""
    if block["type"] in ("tool_use", "tool_result"):
        id_ = block.get("id") or block.get("tool_use_id") or ""
        return "" if _ID.fullmatch(id_) else ".id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    return ""


def refusal(refused: Refused, request_id: str) -> dict[str, Any]:
    kind = _TYPES.get(refused.status, "api_error" if refused.status >= 500 else "invalid_request_error")
    error: dict[str, Any] = {"type": kind, "message": refused.message}
    if refused.details is not None:
        error["details"] = dict(refused.details)
    return {"type": "error", "error": error, "request_id": request_id}


def reply_blocks(message: Message) -> list[dict[str, Any]]:
    """Return the blocks of a reply, its calls where its content has them or at the end."""
    content = [{"type": "text", "text": message.content}] if isinstance(message.content, str) else message.content
    said = [each for each in content if isinstance(each, dict) and each.get("text") != ""]
    args = {call["id"]: call["args"] for call in message.tool_calls}
    uses = {
        id_: {"type": "tool_use", "id": id_, "name": name, "input": args.get(id_, {})}
        for id_, name, _ in raw_calls(message)
    }
    placed = [uses.pop(each["id"], None) if each["type"] == "tool_use" else each for each in said]
    return [*(each for each in placed if each is not None), *uses.values()]


def whole(message: Message, blocks: Sequence[Mapping[str, Any]], model: str, id: str) -> dict[str, Any]:  # noqa: A002
    """Return the body of a reply."""
    usage = message.usage_metadata
    assert usage is not None  # the script gives every message one
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [*blocks],
        "stop_reason": _stop_reason(message),
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage["input_tokens"],
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": usage["output_tokens"],
        },
    }


def stream(body: Mapping[str, Any], message: Message) -> Iterator[bytes]:
    """Yield the events of a reply."""
    usage = body["usage"]
    begun = {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    yield event("message_start", message={**body, **begun})
    yield event("ping")
    written = {id_: text for id_, _, text in raw_calls(message)}
    for index, block in enumerate(body["content"]):
        yield from _block_events(index, block, written)
    delta = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=delta, usage={"output_tokens": usage["output_tokens"]})
    yield event("message_stop")


def _block_events(index: int, block: Mapping[str, Any], written: Mapping[str | None, str]) -> Iterator[bytes]:
    kind = block["type"]
    if kind == "tool_use":
        yield event("content_block_start", index=index, content_block={**block, "input": {}})
        for piece in pieces(written[block["id"]]):
            yield event("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": piece})
    elif kind in _STREAMED:
        delta, key = _STREAMED[kind]
        begun = {"signature": ""} if kind in HIDDEN else {}
        yield event("content_block_start", index=index, content_block={"type": kind, key: "", **begun})
        for piece in pieces(block[key]):
            yield event("content_block_delta", index=index, delta={"type": delta, key: piece})
        if "signature" in block:  # right before the block's stop
            signed = {"type": "signature_delta", "signature": block["signature"]}
            yield event("content_block_delta", index=index, delta=signed)
    else:
        yield event("content_block_start", index=index, content_block=dict(block))
    yield event("content_block_stop", index=index)


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\n".encode() + b"data: " + json_bytes({"type": kind, **fields}) + b"\n\n"


def _stop_reason(message: Message) -> str:
    given = message.response_metadata.get("finish_reason")
    told = {"length": "max_tokens"}.get(str(given), given)
    return str(told) if told else "tool_use" if raw_calls(message) else "end_turn"
