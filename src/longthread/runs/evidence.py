"""An answer about data needs a query: what it says without one goes back to the model once, and is marked then."""

from __future__ import annotations

import re

from longthread.context.citations import citations
from longthread.messages.message import Message
from longthread.model.fold import observation_of
from longthread.runs.run_context import RunContext, is_malformed, note_of
from longthread.tools.tool import Observation

RUN_SQL = "run_sql"
NO_QUERY = "no_query"
MARK = "No query was run for this answer: its numbers are the model's own."
_LABEL = re.compile(r"\[q(\d+)\]")
_NUMBER = re.compile(r"\d+")
_SHOWN = 5


def find_unsupported(context: RunContext, answer: str) -> str | None:
    """Return what an answer says that no query gave: labels of queries that never ran, or numbers, if this run has no
    result of any tool. None if nothing, or if the agent asks no data."""
    if RUN_SQL not in context.tools:
        return None
    unknown = [label for label in _LABEL.findall(answer) if int(label) > context.queries]
    if unknown:
        return f"There is no query [q{unknown[0]}]."
    if any(_is_result(message) for message in context.window.own):
        return None
    queries = [spot.query for spot in context.window.spots if spot.query is not None]
    known = {*_NUMBER.findall(context.run.question), *_NUMBER.findall(f"{context.run.started_at:%Y %-m %m %-d %d}")}
    missing = [
        each["number"]
        for each in citations(answer, queries)
        if each["query"] is None and not known.issuperset(_NUMBER.findall(each["number"]))
    ]
    return f"No query gave these numbers: {', '.join(missing[:_SHOWN])}." if missing else None


def was_reminded(context: RunContext) -> bool:
    return any(is_reminder(message) for message in context.window.own)


def is_reminder(message: Message) -> bool:
    """Return whether a reply went back to the model because no query supported it."""
    error = note_of(message).get("observation", {}).get("error") or {} if is_malformed(message) else {}
    return error.get("type") == NO_QUERY


def reminder(reason: str) -> Observation:
    """Return the observation that reminds a model to query."""
    message = f"{reason} Ask the database first, then answer from the rows."
    return {"ok": False, "error": {"type": NO_QUERY, "message": message}}


def _is_result(message: Message) -> bool:
    return message.role == "tool" and bool(observation_of(str(message.text)).get("ok"))
