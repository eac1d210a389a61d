"""The outcome of a run: its answer or summary, with the queries and the numbers behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from longthread.context.citations import CitedQuery, citations
from longthread.context.window import WindowMessage
from longthread.errors import JsonParseFailed
from longthread.messages.message import Message
from longthread.model.builtin import QUERIES
from longthread.model.run import RunStatus
from longthread.runs.budget import malformed_in_a_row
from longthread.runs.progress import words_for
from longthread.runs.run_context import RunContext, note_of


def is_over(messages: Sequence[Message]) -> bool:
    return bool(messages) and note_of(messages[-1]).get("kind") in {"answer", "summary"}


def outcome_of(context: RunContext) -> tuple[RunStatus, dict[str, Any]]:
    last = context.window.spots[-1].message
    text = str(last.text)
    queries = list(_queries(context.window.spots))
    # An answer may cite a query of an earlier run, whose SQL is shown too.
    mine = {query.label for query in _queries(context.window.own_spots)}
    told = [dict(query.told) for query in queries if query.label in mine or f"[{query.label}]" in text]
    shared = {"message_id": last.id, "queries": told, "usage": _usage(context.window.own)}
    match note_of(last).get("kind"):
        case "answer":
            return "finished", {"answer": text, "citations": citations(text, queries), **shared}
        case "summary":
            hint = words_for(context.run.question)["hint"]
            reason = note_of(last).get("reason", "max_steps")
            return "paused", {"reason": reason, "summary": text, "hint": hint, **shared}
    count = malformed_in_a_row(context.window.own)
    error = JsonParseFailed(count=count, other="native" if context.protocol == "json" else "json")
    return "failed", {"error": error.described(), "error_type": error.code, **shared}


def _queries(spots: Sequence[WindowMessage]) -> Iterator[CitedQuery]:
    names: dict[str | None, str] = {}
    for spot in spots:
        names |= {call.id: call.name for call in spot.entry.tool_calls}
        if names.get(spot.entry.tool_call_id) in QUERIES and spot.query is not None:
            yield spot.query


def _usage(messages: Sequence[Message]) -> dict[str, int]:
    total = {"input_tokens": 0, "output_tokens": 0}
    for message in messages:
        usage: Mapping[str, Any] = (message.usage_metadata if message.role == "assistant" else None) or {}
        for name in total:
            total[name] += usage.get(name, 0)
    return total
