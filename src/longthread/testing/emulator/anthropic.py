"""Anthropic's Messages on the wire: a reply as one body, or as the events of a stream."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from longthread.messages.message import Content, Message, tool_call
from longthread.testing.emulator.faults import Refused
from longthread.testing.scripted import pieces, raw_calls

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


def received(body: Mapping[str, Any]) -> list[Message]:
    """Return the messages of a request, its prompt first, and each result as a message of its own."""
    prompt = [Message("system", body["system"])] if body.get("system") else []
    return [*prompt, *(message for each in body.get("messages") or () for message in _messages(each))]


def _messages(sent: Mapping[str, Any]) -> Iterator[Message]:
    content = sent["content"]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if sent["role"] == "assistant":
        calls = [tool_call(each["name"], each["input"], each["id"]) for each in blocks if each["type"] == "tool_use"]
        yield Message("assistant", [*blocks], tool_calls=calls)
        return
    rest: Content = [each for each in blocks if each["type"] != "tool_result"]
    for each in blocks:
        if each["type"] == "tool_result":
            yield Message("tool", each["content"], tool_call_id=each["tool_use_id"])
    if rest:
        yield Message("user", rest)


def refused_block(body: Mapping[str, Any]) -> Refused | None:
    for number, message in enumerate(body.get("messages") or ()):
        for place, block in enumerate(message["content"] if isinstance(message["content"], list) else ()):
            if problem := _problem(block):
                return Refused(400, f"messages.{number}.content.{place}: {problem}")
    return None


def _problem(block: Mapping[str, Any]) -> str:
    if block["type"] == "text" and not block["text"].strip():
        return "text content blocks must contain non-whitespace text"
    if block["type"] == "thinking" and not isinstance(block.get("signature"), str):
        return "thinking.signature: Field required"
    if block["type"] in ("tool_use", "tool_result"):
        id_ = block.get("id") or block.get("tool_use_id") or ""
        return "" if _ID.fullmatch(id_) else "id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    return ""


def refusal(refused: Refused) -> dict[str, Any]:
    kind = _TYPES.get(refused.status, "api_error" if refused.status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": refused.message}}


def whole(message: Message, model: str, number: int) -> dict[str, Any]:
    return _head(message, model, number) | {
        "content": _blocks(message),
        "stop_reason": _stop_reason(message),
        "usage": _usage(message),
    }


def stream(message: Message, model: str, number: int) -> Iterator[bytes]:
    usage = _usage(message)
    begun: dict[str, Any] = {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    yield _event("message_start", message=_head(message, model, number) | begun)
    yield _event("ping")
    for index, block in enumerate(_blocks(message)):
        yield from _block_events(index, block, message)
    delta = {"stop_reason": _stop_reason(message), "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage={"output_tokens": usage["output_tokens"]})
    yield _event("message_stop")


def _block_events(index: int, block: Mapping[str, Any], message: Message) -> Iterator[bytes]:
    kind = block["type"]
    if kind == "tool_use":
        yield _event("content_block_start", index=index, content_block={**block, "input": {}})
        written = next(text for id_, _, text in raw_calls(message) if id_ == block["id"])
        for piece in pieces(written):
            yield _event("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": piece})
    elif kind in _STREAMED:
        delta, key = _STREAMED[kind]
        yield _event("content_block_start", index=index, content_block={"type": kind, key: ""})
        for piece in pieces(block[key]):
            yield _event("content_block_delta", index=index, delta={"type": delta, key: piece})
        if "signature" in block:
            signed = {"type": "signature_delta", "signature": block["signature"]}
            yield _event("content_block_delta", index=index, delta=signed)
    else:
        yield _event("content_block_start", index=index, content_block=dict(block))
    yield _event("content_block_stop", index=index)


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields}, ensure_ascii=False)}\n\n".encode()


def _blocks(message: Message) -> list[dict[str, Any]]:
    content = [{"type": "text", "text": message.content}] if isinstance(message.content, str) else message.content
    said = [each for each in content if isinstance(each, dict) and each.get("text") != ""]
    args = {call["id"]: call["args"] for call in message.tool_calls}
    uses = [
        {"type": "tool_use", "id": id_, "name": name, "input": args.get(id_, {})} for id_, name, _ in raw_calls(message)
    ]
    return [*(each for each in said if each["type"] != "tool_use"), *uses]


def _stop_reason(message: Message) -> str:
    given = message.response_metadata.get("finish_reason")
    told = {"length": "max_tokens"}.get(str(given), given)
    return str(told) if told else "tool_use" if raw_calls(message) else "end_turn"


def _head(message: Message, model: str, number: int) -> dict[str, Any]:
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "stop_sequence": None}


def _usage(message: Message) -> dict[str, Any]:
    usage = message.usage_metadata
    assert usage is not None  # the script gives every message one
    return {"input_tokens": usage["input_tokens"], "output_tokens": usage["output_tokens"]}
