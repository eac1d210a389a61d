"""The events of a response that is streamed, as objects with their `sequence_number`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from longthread.testing.scripted import pieces
from longthread_testing.emulator.responses import summaries
from longthread_testing.emulator.wire import json_bytes

_Event = tuple[str, dict[str, Any]]
_PARTIAL = 8
"""Characters of the encrypted content that an item shows when it begins: it may be incomplete until the item is done
(`ResponseReasoningItem` in the SDK `openai` 3.57)."""


def events_of(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all events of a finished response, in order."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None, "completed_at": None}
    events: list[_Event] = [
        ("response.created", {"response": begun}),
        ("response.in_progress", {"response": begun}),
    ]
    for place, item in enumerate(response["output"]):
        events.append(("response.output_item.added", {"output_index": place, "item": _begun(item)}))
        ids = {"item_id": item["id"], "output_index": place}
        events += [(kind, {**ids, **fields}) for kind, fields in _INNER[item["type"]](item)]
        events.append(("response.output_item.done", {"output_index": place, "item": item}))
    events.append((f"response.{response['status']}", {"response": dict(response)}))
    return [{"type": kind, "sequence_number": number, **fields} for number, (kind, fields) in enumerate(events)]


def encode_event(event: Mapping[str, Any]) -> bytes:
    return f"event: {event['type']}\n".encode() + b"data: " + json_bytes(event) + b"\n\n"


def _begun(item: Mapping[str, Any]) -> dict[str, Any]:
    if item["type"] == "reasoning":
        return {**item, "summary": [], "encrypted_content": item["encrypted_content"][:_PARTIAL]}
    empty: dict[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
    return {**item, **empty, "status": "in_progress"}


def _reasoning(item: Mapping[str, Any]) -> Iterator[_Event]:
    for place, text in summaries(item):
        at = {"summary_index": place}
        yield "response.reasoning_summary_part.added", {**at, "part": {"type": "summary_text", "text": ""}}
        for piece in pieces(text):
            yield "response.reasoning_summary_text.delta", {**at, "delta": piece}
        yield "response.reasoning_summary_text.done", {**at, "text": text}
        yield "response.reasoning_summary_part.done", {**at, "part": {"type": "summary_text", "text": text}}


def _message(item: Mapping[str, Any]) -> Iterator[_Event]:
    for place, part in enumerate(item["content"]):
        at = {"content_index": place}
        yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
        for piece in pieces(part["text"]):
            yield "response.output_text.delta", {**at, "delta": piece, "logprobs": []}
        yield "response.output_text.done", {**at, "text": part["text"], "logprobs": []}
        yield "response.content_part.done", {**at, "part": part}


def _call(item: Mapping[str, Any]) -> Iterator[_Event]:
    for piece in pieces(item["arguments"]):
        yield "response.function_call_arguments.delta", {"delta": piece}
    yield "response.function_call_arguments.done", {"arguments": item["arguments"], "name": item["name"]}


_INNER = {"reasoning": _reasoning, "message": _message, "function_call": _call}
