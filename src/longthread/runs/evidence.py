"""An answer about data needs a query: what it says without one goes back to the model once, and is marked then."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from itertools import chain

from longthread.builtin.memories import FORGET, REMEMBER
from longthread.context.citations import as_digits, citations, holds, numbers_in
from longthread.messages.message import Message
from longthread.model.builtin import CHART, QUERIES, RUN_SQL
from longthread.model.fold import observation_of
from longthread.runs.run_context import RunContext, is_malformed, note_of
from longthread.tools.tool import Observation

NO_QUERY = "no_query"
MARK = "No query was run for this answer: its numbers are the model's own."
_LABEL = re.compile(r"\[q(\d+)\]")
_DIGITS = re.compile(r"\d+")
_ECHOES = frozenset({REMEMBER, FORGET, CHART})
"""Tools whose results repeat what the model wrote."""
_SHOWN = 5


def find_unsupported(context: RunContext, answer: str) -> str | None:
    """Return what an answer says that nothing gave: labels of queries that never ran, or numbers. None if nothing, or
    if the agent asks no data.

    Numbers may be in words (`as_digits`). Rows of this run's queries support all numbers, since an answer may compute
    from them. Without such rows a number must stand in a result of the conversation, or in the user's words or
    memories; the day supports a date alone.
    """
    if RUN_SQL not in context.tools:
        return None
    unknown = [label for label in _LABEL.findall(answer) if int(label) > context.queries]
    if unknown:
        return f"There is no query [q{unknown[0]}]."
    if any(_has_rows(message) for message in context.window.own):
        return None
    queries = [spot.query for spot in context.window.spots if spot.query is not None]
    day = context.run.started_at.astimezone(context.settings.zone)
    said = as_digits(_mention_of(day).sub(" ", answer))
    missing = [each["number"] for each in citations(said, queries) if each["query"] is None]
    known = _known_numbers(context) if missing else frozenset()
    missing = [number for number in missing if not holds(known, number)]
    return f"No query gave these numbers: {', '.join(missing[:_SHOWN])}." if missing else None


def _has_rows(message: Message) -> bool:
    data = observation_of(str(message.text)).get("data") if message.name in QUERIES else None
    return isinstance(data, Mapping) and bool(data.get("rows"))


def _known_numbers(context: RunContext) -> frozenset[Decimal | str]:
    """Return the numbers of the user's words and memories, and those that the results of other tools told."""
    messages = [spot.message for spot in context.window.spots]
    words = [context.run.question, context.recalled, *(str(each.text) for each in messages if each.role == "user")]
    own = as_digits("\n".join(words))
    told = (str(each.text) for each in messages if each.role == "tool" and each.name not in _ECHOES)
    results = (text for text in told if observation_of(text).get("ok"))
    found = chain(numbers_in(own), map(Decimal, _DIGITS.findall(own)), *map(numbers_in, results))
    return frozenset(found)


def _mention_of(day: datetime) -> re.Pattern[str]:
    """Return the pattern of this day, its month and its year in an answer, as people write dates."""
    year, month, of_month = f"{day:%Y}", f"0?{day.month}", f"0?{day.day}"
    name = f"(?:{day:%B}|{day:%b}\\.?)"
    nth = rf"{of_month}(?:st|nd|rd|th)?\.?"
    forms = (
        rf"{year}\s*[-/.年]\s*{month}(?:\s*[-/.月]\s*{of_month}\s*日?|\s*月|(?!\s*[-/.]?\d))",
        rf"{of_month}[-/.]\s?{month}[-/.]\s?{year}",
        rf"{month}/{of_month}/{year}",
        rf"{month}\s*月\s*{of_month}\s*[日号號]",
        rf"{name}\s+{nth}(?:,?\s+{year})?",
        rf"{nth}\s+(?:of\s+)?{name}(?:,?\s+{year})?",
        rf"{nth}\s+(?:de\s+)?[^\W\d_]{{3,10}}\s+(?:de\s+)?{year}",
        rf"{name},?\s+{year}",
        rf"(?:\b(?:in|of|for|since|during|until|by|year|is)\s+|[(（]){year}",
        rf"{year}\s*年",
    )
    return re.compile(rf"(?<![\d.,])(?:{'|'.join(forms)})(?!\d|[.,]\d)", re.I)


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
