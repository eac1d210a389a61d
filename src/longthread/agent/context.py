"""What the parts of one run share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from longthread.agent.messages import NOTE
from longthread.agent.recorder import CallRecorder
from longthread.agent.stream import EventStream
from longthread.model.ids import new_id
from longthread.model.run import Protocol, Run, Step
from longthread.settings import Settings
from longthread.store.driver import Driver
from longthread.store.runs import Lease
from longthread.tools.tool import Tool


@dataclass(slots=True)
class RunContext:
    """One run in execution.

    `earlier` holds, by call id, the tool steps that this run made in a process that has died. `queries` is the number
    of the last query label given out in the thread. `window` is in tokens. `call_ids` are the ids of the calls in the
    state, shown or not.
    """

    store: Driver
    lease: Lease
    stream: EventStream
    run: Run
    tools: Mapping[str, Tool]
    system_prompt: str
    settings: Settings
    window: int
    question_id: str
    protocol: Protocol
    queries: int = 0
    earlier: Mapping[str, Step] = field(default_factory=dict)
    message_id: str = field(default_factory=new_id)
    call_ids: frozenset[str | None] = frozenset()
    recorder: CallRecorder = field(default_factory=CallRecorder)
    _held: dict[str, bool] = field(default_factory=dict)

    def held_back(self, text: str) -> bool:
        """Whether the next piece of the current message is not to be told yet: it begins like JSON, not like prose."""
        if self.message_id not in self._held and text.strip():
            self._held[self.message_id] = text.lstrip()[0] in "{`<["
        return self._held.get(self.message_id, False)

    def of_this_run(self, messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
        """The messages behind the one that started this run."""
        places = [n for n, message in enumerate(messages) if message.id == self.question_id]
        return messages[places[-1] + 1 :] if places else messages


def note_of(message: BaseMessage) -> dict[str, Any]:
    """What we noted on a message."""
    note: dict[str, Any] = message.additional_kwargs.get(NOTE, {})
    return note


def noted(message: AIMessage, **note: Any) -> AIMessage:
    """The message with a further note."""
    kwargs = message.additional_kwargs | {NOTE: note_of(message) | note}
    return message.model_copy(update={"additional_kwargs": kwargs})


def is_malformed(message: BaseMessage) -> bool:
    """Whether the message is a reply that could not be read."""
    return isinstance(message, AIMessage) and note_of(message).get("kind") == "malformed"


def open_calls(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """The calls without a result of the last assistant's message, when only results stand behind it."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        elif isinstance(message, AIMessage):
            return [dict(call) for call in message.tool_calls if call["id"] not in answered]
        else:
            return []
    return []


def pairs(messages: Sequence[BaseMessage]) -> Iterator[tuple[AIMessage, dict[str, Any], ToolMessage]]:
    """Each tool call with the message that made it and its result, in the order of the results."""
    calls: dict[str, tuple[AIMessage, dict[str, Any]]] = {}
    for message in messages:
        if isinstance(message, AIMessage):
            calls |= {call["id"] or "": (message, dict(call)) for call in message.tool_calls}
        elif isinstance(message, ToolMessage) and message.tool_call_id in calls:
            yield *calls[message.tool_call_id], message


def questions(messages: Sequence[BaseMessage]) -> list[str]:
    """The user's messages, oldest first."""
    return [str(m.text) for m in messages if isinstance(m, HumanMessage) and note_of(m).get("kind") != "observation"]
