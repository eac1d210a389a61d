"""A conversation as the demo model sees it: turns of a question, calls with their observations, and an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from longthread.model.language import agrees, asks_to_continue
from longthread.view.items import BARE_ARGS

_KNOWLEDGE = re.compile(r"```json longthread-knowledge\s*\n(.*?)\n```", re.DOTALL)


@dataclass(frozen=True)
class DemoCall:
    """A tool call; `id` is empty until the model has made it."""

    name: str
    args: Mapping[str, Any]
    id: str = ""


@dataclass(frozen=True)
class Utterance:
    """One message. An observation is a `tool` message whose text is JSON."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[DemoCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True)
class Exchange:
    """A call and what came back; `observation` is None when it cannot be read."""

    call: DemoCall
    observation: Mapping[str, Any] | None

    @property
    def data(self) -> Mapping[str, Any]:
        """The data of a call that worked, else empty."""
        if self.observation and self.observation.get("ok"):
            return self.observation.get("data") or {}
        return {}

    @property
    def is_cut(self) -> bool:
        """Whether it did not fit into the view: what was asked is not shown, or not what came back."""
        return self.call.args == BARE_ARGS or self.observation is None

    @property
    def error(self) -> Mapping[str, Any] | None:
        """The error of a call that did not work."""
        if self.observation is None:
            return {"type": "unreadable", "message": "The tool's result cannot be read."}
        return None if self.observation.get("ok") else self.observation.get("error") or {"message": "It failed."}


@dataclass
class DemoTurn:
    """A question and what was done for it so far."""

    question: str
    exchanges: list[Exchange] = field(default_factory=list)
    answer: str = ""


def turns_of(messages: Sequence[Utterance]) -> list[DemoTurn]:
    """The turns of a conversation; "continue" goes on with the turn before it."""
    turns: list[DemoTurn] = []
    waiting: dict[str, DemoCall] = {}
    order: list[str] = []
    for message in messages:
        if message.role == "user" and not (turns and (asks_to_continue(message.text) or agrees(message.text))):
            turns.append(DemoTurn(message.text))
        elif message.role == "assistant" and turns:
            turns[-1].answer = "" if message.calls else message.text
            for call in message.calls:
                waiting[call.id] = call
                order.append(call.id)
        elif message.role == "tool" and turns:
            call_id = message.call_id or (order[-1] if order else "")
            answered = waiting.pop(call_id, None)  # an observation without a call of its own answers none
            if answered is not None:
                turns[-1].exchanges.append(Exchange(answered, _observation(message.text)))
    return turns


def _observation(text: str) -> Mapping[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def facts_of(messages: Sequence[Utterance]) -> dict[str, Any]:
    """The facts in the block of known facts; empty when there is none or it is no JSON object."""
    for message in messages:
        if message.role != "system":
            continue
        found = _KNOWLEDGE.search(message.text)
        if found:
            return dict(_observation(found.group(1)) or {})
    return {}
