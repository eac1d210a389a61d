"""Anthropic's Messages: messages as a request has them, and a streamed reply as a message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from longthread.messages.message import CallPieces, Message, inline, read_calls, usage_of
from longthread.model.content import CALLS

PROVIDER = "anthropic"
_THINKING = frozenset({"thinking", "redacted_thinking"})
_TEXTS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""Deltas that extend a text of their block, and its key."""
_FOREIGN = frozenset({"reasoning", "reasoning_content", "invalid_tool_call"})
_OTHER = re.compile(r"[^a-zA-Z0-9_-]")
_EMPTY = "(empty)"


def to_request(messages: Sequence[Message]) -> tuple[str, list[dict[str, Any]]]:
    """Return the system prompt and the messages of a request. Roles alternate: results join the user's next text."""
    first = next((n for n, message in enumerate(messages) if message.role != "system"), len(messages))
    prompt = "\n\n".join(text for message in messages[:first] if (text := message.text))
    sent: list[dict[str, Any]] = []
    for message in messages[first:]:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _reply_blocks(message) if role == "assistant" else _user_blocks(message)
        if sent and sent[-1]["role"] == role:
            sent[-1]["content"] += blocks
        elif blocks:
            sent.append({"role": role, "content": blocks})
    return prompt, sent


def _user_blocks(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        result = {"type": "tool_result", "tool_use_id": _id(message.tool_call_id), "content": message.text}
        return [result | ({"is_error": True} if message.status == "error" else {})]
    parts = [message.content] if isinstance(message.content, str) else message.content
    return [_part({"type": "text", "text": part} if isinstance(part, str) else part) for part in parts]


def _part(part: dict[str, Any]) -> dict[str, Any]:
    if part.get("type") == "text":
        text = str(part.get("text", ""))
        return {"type": "text", "text": text if text.strip() else _EMPTY}
    picture = inline(part)
    if picture is None:
        return part
    base64 = {"type": "base64", "media_type": picture.mime, "data": picture.data}
    return {"type": "image", "source": {"type": "url", "url": picture.url} if picture.url else base64}


def _reply_blocks(message: Message) -> list[dict[str, Any]]:
    """Return a reply's blocks: its thinking unchanged or not at all, and each call once, with its arguments as they
    are."""
    calls = {call["id"]: _use(call, call["args"]) for call in message.tool_calls}
    calls |= {call["id"]: _use(call, {"unread": call["args"]}) for call in message.invalid_tool_calls}
    parts = [message.content] if isinstance(message.content, str) else message.content
    blocks: list[dict[str, Any]] = []
    for part in parts:
        block = {"type": "text", "text": part} if isinstance(part, str) else part
        if block.get("type") in CALLS:
            blocks += [use for use in [calls.pop(block.get("id") or block.get("call_id"), None)] if use]
        elif _is_sent(block):
            blocks.append({key: value for key, value in block.items() if key != "index"})
    return [*blocks, *calls.values()]


def _is_sent(block: Mapping[str, Any]) -> bool:
    kind = block.get("type")
    if kind == "text":
        return bool(str(block.get("text", "")).strip())
    if kind in _THINKING:
        return isinstance(block.get("signature") if kind == "thinking" else block.get("data"), str)
    return kind not in _FOREIGN


def _use(call: Mapping[str, Any], args: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": _id(call["id"]), "name": call["name"], "input": args}


def _id(call_id: str | None) -> str:
    """Replace the characters of a call's id that Anthropic refuses: some servers use others."""
    return _OTHER.sub("_", call_id or "")


def tool_specs(tools: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": {"type": "object", "properties": {}} | dict(tool.parameters),
        }
        for tool in tools
    ]


def tool_choice(choice: str) -> dict[str, str]:
    if choice in ("auto", "none"):
        return {"type": choice}
    return {"type": "any"} if choice == "required" else {"type": "tool", "name": choice}


class AnthropicReply:
    def __init__(self, model: str) -> None:
        self._model = model
        self._blocks: dict[int, dict[str, Any]] = {}
        self._calls: dict[int, CallPieces] = {}
        self._usage: dict[str, Any] = {}
        self._finish: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the provider has said why the reply ended."""
        return self._finish is not None

    def add(self, event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Take an event or a whole message; yields its visible text, and its thinking."""
        match event.get("type"):
            case "message_start":
                self._note(event.get("message") or {})
            case "message":
                self._note(event)
                for place, block in enumerate(event.get("content") or ()):
                    yield from self._begin(place, block)
            case "content_block_start":
                yield from self._begin(event["index"], event.get("content_block") or {})
            case "content_block_delta":
                yield from self._go_on(event["index"], event.get("delta") or {})
            case "message_delta":
                self._note({**(event.get("delta") or {}), "usage": event.get("usage")})

    def _note(self, told: Mapping[str, Any]) -> None:
        if isinstance(usage := told.get("usage"), Mapping):
            self._usage |= {key: value for key, value in usage.items() if value is not None}
        self._finish = told.get("stop_reason") or self._finish

    def _begin(self, place: int, block: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        self._blocks[place] = dict(block)
        if block.get("type") == "tool_use":
            self._calls[place] = call = CallPieces(block.get("id"))
            call.add_name(block.get("name"))
            call.add_arguments(block.get("input"))
        yield _read_block(block)

    def _go_on(self, place: int, delta: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        block = self._blocks.setdefault(place, {})
        kind = delta.get("type")
        if kind == "input_json_delta":
            if place in self._calls:
                self._calls[place].add_arguments(delta.get("partial_json"))
            else:  # a call of the provider's own tools: no other code reads it
                block["input"] = _join_texts(block.get("input"), delta.get("partial_json"))
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
        elif kind in _TEXTS:
            key = _TEXTS[kind]
            block[key] = _join_texts(block.get(key), delta.get(key))
            yield _read_block({"type": block.get("type"), key: delta.get(key)})

    def message(self) -> Message:
        """Return the whole reply. Its content is a text, unless it has other blocks than texts and calls."""
        calls, unread = read_calls([self._calls[place] for place in sorted(self._calls)])
        usage = self._usage
        return Message(
            "assistant",
            self._content({call["id"]: call["args"] for call in calls}),
            response_metadata={
                "finish_reason": self._finish or "end_turn",
                "model_name": self._model,
                "model_provider": PROVIDER,
            },
            tool_calls=calls,
            invalid_tool_calls=unread,
            usage_metadata=self._count_usage() if usage else None,
        )

    def _content(self, read: Mapping[str | None, Any]) -> Any:
        blocks = [self._blocks[place] for place in sorted(self._blocks)]
        if all(block.get("type") in ("text", "tool_use") and not block.get("citations") for block in blocks):
            return "".join(str(block.get("text", "")) for block in blocks)
        kept = [block for block in blocks if block.get("type") != "tool_use" or block.get("id") in read]
        return [block | {"input": read[block["id"]]} if block.get("type") == "tool_use" else block for block in kept]

    def _count_usage(self) -> dict[str, Any]:
        usage = self._usage
        cached, written = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
        given = (usage.get("input_tokens") or 0) + cached + written
        return usage_of(given, usage.get("output_tokens"), cached, written)


def _read_block(block: Mapping[str, Any]) -> tuple[str, str]:
    text, thinking = block.get("text"), block.get("thinking")
    return (text if isinstance(text, str) else ""), (thinking if isinstance(thinking, str) else "")


def _join_texts(before: Any, more: Any) -> str:
    return (before if isinstance(before, str) else "") + (more if isinstance(more, str) else "")
