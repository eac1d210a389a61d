"""Pure: what tasks have written for LangGraph itself, without what tells of forgotten messages.

Questions to a person, their answers, results of tasks and errors: a run that goes on replays them by place, so none
is taken out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME
from langgraph.types import Interrupt, Send
from pydantic import BaseModel

from longthread.langgraph.saver.channel_values import with_attribute
from longthread.model.entry import Entry

CONTROL = frozenset((ERROR, INTERRUPT, RESUME, "__return__"))
NOTHING = "__no_writes__"
"""LangGraph's name for a write that only says that its task has finished."""
_LEAST = 8
"""Characters that a text must have to be looked for: "yes" is a message, and the answer to many questions."""


@dataclass(slots=True)
class ForgottenTexts:
    """What forgotten messages say, in their texts and in their calls' arguments. `ids` are the messages' own."""

    entries: Sequence[Entry]
    ids: Set[str]
    _calls: frozenset[str] = field(init=False)
    _actions: list[tuple[str, Any]] = field(init=False)
    _words: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        calls = [call for entry in self.entries for call in entry.tool_calls]
        self._calls = frozenset(call.id for call in calls)
        self._actions = [(call.name, call.args) for call in calls]
        words = [*(text for call in calls for text in _texts(call.args)), *(entry.text for entry in self.entries)]
        self._words = frozenset(word for word in words if len(word.strip()) >= _LEAST)

    def is_held(self, value: Any) -> bool:
        """Whether a value has one of the messages or of their calls in it, or the whole text of one."""
        if isinstance(value, str):
            return value in self._words
        if isinstance(value, BaseMessage):
            return value.id in self.ids
        if isinstance(value, Mapping) and self._is_call(value):
            return True
        return any(map(self.is_held, _parts(value)))

    def is_quoted(self, value: Any) -> bool:
        """Whether a value has one of them in it, or a text that contains one of theirs."""
        return self.is_held(value) or any(word in text for text in _texts(value) for word in self._words)

    def blank(self, value: Any) -> Any:
        """Return a value that has nothing in the place of what quotes one; itself if nothing does."""
        if isinstance(value, list):
            items = [self.blank(item) for item in value]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        if not self.is_quoted(value):
            return value
        return with_attribute(value, "value", None) if isinstance(value, Interrupt) else None

    def _is_call(self, value: Mapping[Any, Any]) -> bool:
        """Whether it is one of the calls, or asks a person about one: then it has no id."""
        if "args" not in value:
            return False
        return value.get("id") in self._calls or (value.get("name"), value["args"]) in self._actions


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, Send | Interrupt):
        return [value.arg if isinstance(value, Send) else value.value]
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, BaseModel):
        return () if isinstance(value, BaseMessage) else value.__dict__.values()  # another message may quote one
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, each.name, None) for each in fields(value)]
    return value if isinstance(value, list | tuple | deque | set | frozenset) else ()


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, BaseException):
        yield str(value)
    for each in _parts(value):
        yield from _texts(each)
