"""Entries of the log as AG-UI's messages, and its messages as a client shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ag_ui import core as agui

from longthread.context.forks import Told, is_shown
from longthread.errors import NotSupported
from longthread.model.entry import Entry
from longthread.model.fold import observation_of
from longthread.store import log


def told_of(messages: Sequence[agui.Message]) -> list[Told]:
    """The user's and the assistant's messages with text, in order. Calls, results, reasoning, activities, and system
    messages are not compared: ours stay. Raises NotSupported for a picture, a sound, a video or a document."""
    told: list[Told] = []
    for message in messages:
        if isinstance(message, agui.UserMessage):
            told.append(Told(message.id, "user", _text(message.content)))
        elif isinstance(message, agui.AssistantMessage) and message.content:
            told.append(Told(message.id, "assistant", _text(message.content)))
    return told


def messages_of(branch: Sequence[Entry]) -> list[agui.Message]:
    """A branch as messages, under the ids that their clients gave or were told."""
    made: list[agui.Message] = []
    calls: set[str] = set()
    for entry in branch:
        own_id = log.sent_id(entry)
        if is_shown(entry):
            role = agui.UserMessage if entry.role == "user" else agui.AssistantMessage
            made.append(role(id=own_id, content=entry.shown_text))
        elif entry.role == "assistant" and entry.tool_calls and entry.kind is None:
            made += [agui.ReasoningMessage(id=f"{own_id}.thought", content=entry.text)] if entry.text else []
            made.append(agui.AssistantMessage(id=own_id, tool_calls=_calls(entry)))
            calls |= {call.id for call in entry.tool_calls}
        elif entry.role == "tool" and entry.tool_call_id in calls:
            call = str(entry.tool_call_id)
            made.append(agui.ToolMessage(id=f"{call}.result", tool_call_id=call, content=_result(entry)))
    return made


def _text(content: str | Sequence[agui.ContentPart]) -> str:
    if isinstance(content, str):
        return content
    for part in content:
        if not isinstance(part, agui.TextPart):
            raise NotSupported(what=f"A message's part of type {part.type}", reason="agents read text alone.")
    return "\n".join(part.text for part in content if isinstance(part, agui.TextPart))


def _calls(entry: Entry) -> list[agui.ToolCall]:
    return [
        agui.ToolCall(
            id=call.id, type="function", function=agui.FunctionCall(name=call.name, arguments=_dump(call.args))
        )
        for call in entry.tool_calls
    ]


def _result(entry: Entry) -> str:
    return _dump(observation_of(entry.text))


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
