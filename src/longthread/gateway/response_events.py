"""The events of a finished response of OpenAI's, for those who stream it again. Pure.

Each text comes as one piece, so that there are fewer events than there were, with numbers of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from longthread.gateway.raw_json import spelled

_Event = tuple[str, dict[str, Any]]
_TEXT_FIELDS = {"output_text": "text", "refusal": "refusal", "reasoning_text": "text"}
_CALLS = {
    "function_call": ("function_call_arguments", "arguments"),
    "custom_tool_call": ("custom_tool_call_input", "input"),
}
_BEGUN: Mapping[str, Mapping[str, Any]] = {
    "message": {"content": [], "status": "in_progress"},
    "function_call": {"arguments": "", "status": "in_progress"},
    "custom_tool_call": {"input": "", "status": "in_progress"},
    "reasoning": {"summary": []},
}


def events_after(response: Mapping[str, Any], number: int) -> bytes:
    """Return the events of a response behind number `number` as a stream; the last one comes in any case."""
    every = [
        {"type": kind, "sequence_number": place, **fields} for place, (kind, fields) in enumerate(_events(response))
    ]
    shown = [event for event in every if event["sequence_number"] > number]
    if not shown:
        shown = [every[-1] | {"sequence_number": number + 1}]
    return b"".join(f"event: {event['type']}\ndata: {spelled(event)}\n\n".encode() for event in shown)


def _events(response: Mapping[str, Any]) -> Iterator[_Event]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None, "completed_at": None}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for place, item in enumerate(response["output"]):
        kind = item.get("type")
        at = {"item_id": item.get("id"), "output_index": place}
        yield "response.output_item.added", {"output_index": place, "item": {**item, **_BEGUN.get(kind, {})}}
        if kind in _CALLS:
            yield from _call(item, at)
        elif kind in ("message", "reasoning"):
            yield from _summaries(item, at)
            yield from _contents(item, at)
        yield "response.output_item.done", {"output_index": place, "item": item}
    yield f"response.{response.get('status') or 'completed'}", {"response": dict(response)}


def _call(item: Mapping[str, Any], at: Mapping[str, Any]) -> Iterator[_Event]:
    name, field = _CALLS[item["type"]]
    text = item.get(field) or ""
    yield f"response.{name}.delta", {**at, "delta": text}
    yield f"response.{name}.done", {**at, field: text, **({"name": item["name"]} if field == "arguments" else {})}


def _summaries(item: Mapping[str, Any], at: Mapping[str, Any]) -> Iterator[_Event]:
    for place, part in enumerate(item.get("summary") or ()):
        here, text = {**at, "summary_index": place}, part.get("text", "")
        yield "response.reasoning_summary_part.added", {**here, "part": {**part, "text": ""}}
        yield "response.reasoning_summary_text.delta", {**here, "delta": text}
        yield "response.reasoning_summary_text.done", {**here, "text": text}
        yield "response.reasoning_summary_part.done", {**here, "part": part}


def _contents(item: Mapping[str, Any], at: Mapping[str, Any]) -> Iterator[_Event]:
    for place, part in enumerate(item.get("content") or ()):
        here, kind = {**at, "content_index": place}, part.get("type")
        field = _TEXT_FIELDS.get(kind)
        empty = {**part, field: ""} if field else part
        yield "response.content_part.added", {**here, "part": empty}
        if field:
            text = part.get(field) or ""
            logprobs = {"logprobs": part.get("logprobs") or []} if kind == "output_text" else {}
            yield f"response.{kind}.delta", {**here, "delta": text, **logprobs}
            yield f"response.{kind}.done", {**here, field: text, **logprobs}
        yield "response.content_part.done", {**here, "part": part}
