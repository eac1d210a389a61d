"""Read the messages of a run: notes on them, calls without a result, and replies that could not be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from longthread.messages.message import Message
from longthread.model.entry import NOTE

NO_QUERY = "no_query"


def note_of(message: Message) -> dict[str, Any]:
    note: dict[str, Any] = message.additional_kwargs.get(NOTE, {})
    return note


def noted(message: Message, **note: Any) -> Message:
    kwargs = message.additional_kwargs | {NOTE: note_of(message) | note}
    return replace(message, additional_kwargs=kwargs)


def is_malformed(message: Message) -> bool:
    """Return whether the message is a reply that could not be read."""
    return message.role == "assistant" and note_of(message).get("kind") == "malformed"


def open_calls(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the calls without a result of the last assistant's message, if only results follow it."""
    answered: set[str | None] = set()
    for message in reversed(messages):
        if message.role == "tool":
            answered.add(message.tool_call_id)
        elif message.role == "assistant":
            return [dict(call) for call in message.tool_calls if call["id"] not in answered]
        else:
            return []
    return []


def pairs(messages: Sequence[Message]) -> Iterator[tuple[Message, dict[str, Any], Message]]:
    """Yield each tool call with the message that made it and its result, in the order of the results."""
    calls: dict[str, tuple[Message, dict[str, Any]]] = {}
    for message in messages:
        if message.role == "assistant":
            calls |= {call["id"] or "": (message, dict(call)) for call in message.tool_calls}
        elif message.role == "tool" and message.tool_call_id in calls:
            yield *calls[message.tool_call_id], message


def is_reminder(message: Message) -> bool:
    """Return whether a reply went back to the model because no query supported it."""
    error = note_of(message).get("observation", {}).get("error") or {} if is_malformed(message) else {}
    return error.get("type") == NO_QUERY


def malformed_in_a_row(messages: Sequence[Message]) -> int:
    count = 0
    for message in reversed(messages):
        if message.role == "assistant" and not is_reminder(message):
            if not is_malformed(message):
                break
            count += 1
    return count
