"""OpenAI's Chat Completions: messages as a request has them, and a streamed reply as a message."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from longthread.messages.message import CallPieces, Message, inline, read_calls, usage_of
from longthread.model.content import CALLS, THINKING

PROVIDER = "openai"
REASONING = ("reasoning_content", "reasoning", "reasoning_details")
"""Fields of a reply that hold a model's thinking; each server has its own."""
_CALL_KEYS = frozenset({"index", "id", "type", "function"})
_NOT_SENT = THINKING | CALLS | {"tool_result", "invalid_tool_call", "server_tool_use"}
_ROLE = "__openai_role__"


def to_request(messages: Sequence[Message], model: str, *, beside: bool = True) -> list[dict[str, Any]]:
    """Return the messages of a request.

    Args:
        model: the one that is asked. Only its own thinking is sent back, and only with the calls after it, as servers
            require.
        beside: whether the server takes fields that OpenAI itself does not know.
    """
    return [_to_wire(message, model, beside=beside) for message in messages]


def _to_wire(message: Message, model: str, *, beside: bool) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
    named = {"name": message.name} if message.name else {}
    if message.role == "assistant":
        return {"role": "assistant", **named} | _reply(message, model, beside=beside)
    role = message.additional_kwargs.get(_ROLE, "system") if message.role == "system" else "user"
    return {"role": role, "content": _parts(message), **named}


def _reply(message: Message, model: str, *, beside: bool) -> dict[str, Any]:
    calls = [_call(call, beside=beside) for call in (*message.tool_calls, *message.invalid_tool_calls)]
    if not calls:
        return {"content": message.text}
    told = message.response_metadata
    own = beside and told.get("model_provider") == PROVIDER and told.get("model_name") == model
    thinking = {key: value for key in REASONING if (value := message.additional_kwargs.get(key))} if own else {}
    return {"content": message.text or None, **thinking, "tool_calls": calls}


def _call(call: Mapping[str, Any], *, beside: bool) -> dict[str, Any]:
    args = call["args"]
    text = json.dumps(args, ensure_ascii=False) if isinstance(args, Mapping) else args or ""
    more = {key: call[key] for key in call.keys() - {"id", "name", "args", "type", "error"}} if beside else {}
    return {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": text}, **more}


def _parts(message: Message) -> str | list[dict[str, Any]]:
    if isinstance(message.content, str):
        return message.content
    parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in message.content]
    sent = [_part(part) for part in parts if part.get("type") not in _NOT_SENT]
    return sent if any(part.get("type") != "text" for part in sent) else message.text


def _part(part: dict[str, Any]) -> dict[str, Any]:
    if part.get("type") == "text":
        return {"type": "text", "text": part.get("text", "")}
    picture = inline(part)
    if picture is None:
        return part
    return {"type": "image_url", "image_url": {"url": picture.url or f"data:{picture.mime};base64,{picture.data}"}}


def tool_specs(tools: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
        }
        for tool in tools
    ]


def tool_choice(choice: str) -> Any:
    return choice if choice in ("auto", "none", "required") else {"type": "function", "function": {"name": choice}}


class CompletionReply:
    def __init__(self, model: str) -> None:
        self._model = model
        self._text: list[str] = []
        self._reasoning: dict[str, Any] = {}
        self._calls: list[CallPieces] = []
        self._places: dict[int, CallPieces] = {}
        self._usage: Mapping[str, Any] = {}
        self._finish: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the provider has said why the reply ended."""
        return self._finish is not None

    @property
    def is_empty(self) -> bool:
        return not (self._text or self._calls or self._reasoning)

    def add(self, chunk: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Take a chunk or a whole completion; yields its visible text, and its thinking."""
        if isinstance(usage := chunk.get("usage"), Mapping):
            self._usage = usage or self._usage
        for choice in (chunk.get("choices") or ())[:1]:
            delta = choice.get("delta") or choice.get("message") or {}
            self._finish = choice.get("finish_reason") or self._finish
            self._add_calls(delta.get("tool_calls") or ())
            yield self._add_text(delta), self._add_reasoning(delta)

    def _add_text(self, delta: Mapping[str, Any]) -> str:
        content = delta.get("content") or delta.get("refusal") or ""
        text = content if isinstance(content, str) else Message("assistant", content).text
        if text:
            self._text.append(text)
        return text

    def _add_reasoning(self, delta: Mapping[str, Any]) -> str:
        told = ""
        for key in REASONING:
            value = delta.get(key)
            if isinstance(value, str) and value:
                self._reasoning[key] = self._reasoning.get(key, "") + value
                told = told or value
            elif isinstance(value, list):
                merge_details(self._reasoning.setdefault(key, []), value)
        return told

    def _add_calls(self, pieces: Iterable[Mapping[str, Any]]) -> None:
        for number, piece in enumerate(pieces):
            place = piece.get("index")
            place = place if isinstance(place, int) else number
            call, id_ = self._places.get(place), piece.get("id") or None
            # Some servers give all calls of a reply one index, and different ids.
            if call is None or (id_ and call.id and id_ != call.id):
                call = self._places[place] = CallPieces(id_)
                self._calls.append(call)
            call.id = call.id or id_
            function = piece.get("function") or {}
            call.add_name(function.get("name"))
            call.add_arguments(function.get("arguments"))
            call.beside |= {key: value for key, value in piece.items() if key not in _CALL_KEYS}

    def message(self) -> Message:
        calls, unread = read_calls(self._calls)
        usage = self._usage
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        return Message(
            "assistant",
            "".join(self._text),
            additional_kwargs=self._reasoning,
            response_metadata={
                "finish_reason": self._finish or "stop",
                "model_name": self._model,
                "model_provider": PROVIDER,
            },
            tool_calls=calls,
            invalid_tool_calls=unread,
            usage_metadata=usage_of(usage.get("prompt_tokens"), usage.get("completion_tokens"), cached)
            if usage
            else None,
        )


def merge_details(known: list[Any], pieces: Iterable[Any]) -> None:
    """Add pieces of `reasoning_details`: texts of the same index and type are joined, others stay unchanged."""
    for piece in pieces:
        same = known[-1] if known and isinstance(piece, dict) and _is_same(known[-1], piece) else None
        if same is None:
            known.append(dict(piece) if isinstance(piece, dict) else piece)
            continue
        for key, value in piece.items():
            grows = key in ("text", "summary", "data") and isinstance(value, str) and isinstance(same.get(key), str)
            same[key] = same[key] + value if grows else value if value is not None else same.get(key)


def _is_same(one: Any, other: Mapping[str, Any]) -> bool:
    return isinstance(one, dict) and all(one.get(key) == other.get(key) for key in ("index", "type"))
