"""What a model call of somebody else's agent sees: the view of its state's messages, which know nothing of the log.

A view goes on from the one before. What is kept of that names messages by their ids, so that it holds in any process,
for any checkpoint, and when messages have been removed from the state.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from longthread.agent.window import Past, Spot, item_of
from longthread.model.entry import Entry, Role, ToolCall
from longthread.model.manifest import Segment
from longthread.view.items import Item
from longthread.view.tokens import ANY

REMEMBERED = 4096
"""Messages whose costs are remembered."""
CHARACTERS = 16_000_000
"""What they hold, of all of them: pictures are large."""
_ANEW = (Segment(-1, -1, "whole"),)
"""The manifest of a view of which nothing is there any more."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is kept of the last call's view, as JSON in the state: how its messages went in, and what it cost.

    `parts` are segments: how many messages, the first and the last of them, and how they went in.
    """

    parts: Sequence[Sequence[Any]] = ()
    estimated: int = 0
    reported: int = 0
    model: str = ""

    @classmethod
    def of(cls, segments: Sequence[Segment], spots: Sequence[Spot], family: str) -> Seen:
        """What is to be kept of a view. The messages' numbers are their places, from 1 on."""
        names = [_short(spot.item_for(family).key) for spot in spots]
        told = [
            [each.last - each.first + 1, names[each.first - 1], names[each.last - 1], *each.to_json()[2:]]
            for each in segments
            if each.how not in ("summary", "recalled")
        ]
        return cls(told)

    def to_json(self) -> dict[str, Any]:
        return {
            "parts": [list(part) for part in self.parts],
            "estimated": self.estimated,
            "reported": self.reported,
            "model": self.model,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Seen | None:
        return cls(**data) if data else None

    def past(self, spots: Sequence[Spot], summary: str, family: str) -> Past:
        """The call before, as far as its messages are here; with nothing of it, when they are not as they were."""
        places = {_short(spot.item_for(family).key): n for n, spot in enumerate(spots, 1)}
        segments: list[Segment] = []
        for count, first, last, *how in self.parts:
            start, end = places.get(first), places.get(last)
            if end is None:
                if start is not None:
                    return Past(_ANEW, summary)
                segments.append(Segment(-count, -1, *how))
            elif (start if start is not None else min(0, end - count + 1)) != end - count + 1:
                return Past(_ANEW, summary)
            else:
                segments.append(Segment(end - count + 1, end, *how))
        return Past(segments, summary)


def _short(key: str) -> str:
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()


@dataclass(slots=True)
class Messages:
    """Messages of states as a view is composed of them. What is computed of one is remembered for a while."""

    _known: OrderedDict[int, tuple[BaseMessage, Entry, dict[str, Item], int]] = field(default_factory=OrderedDict)
    _size: int = 0

    def spots(self, messages: Sequence[BaseMessage], family: str = ANY) -> list[Spot]:
        """Where each stands, from 1 on. Those without an id, or with one that others have too, get a name."""
        found: list[Spot] = []
        times: Counter[str] = Counter()
        for n, message in enumerate(messages, 1):
            name = message.id or _content(message)
            key = name if not times[name] and message.id else f"{name}#{times[name]}"
            times[name] += 1
            entry, items = self._of(message, key, family)
            if items[family].key != key:
                items = {family: replace(items[family], key=key)}
            found.append(Spot(replace(entry, id=key, seq=n), message, items))
        return found

    def _of(self, message: BaseMessage, key: str, family: str) -> tuple[Entry, dict[str, Item]]:
        known = self._known.get(id(message))
        if known is None or known[0] is not message:
            # Kept with the message: its address is then nobody else's.
            known = self._known[id(message)] = (message, _entry(message, key), {}, len(str(message.content)))
            self._size += known[3]
        _, entry, items, _ = known
        if family not in items:
            items[family] = item_of(message, entry, family)
        self._known.move_to_end(id(message))
        while len(self._known) > REMEMBERED or (len(self._known) > 1 and self._size > CHARACTERS):
            _, (*_, size) = self._known.popitem(last=False)
            self._size -= size
        return entry, items


def _entry(message: BaseMessage, key: str) -> Entry:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return Entry(
        id=key,
        role=_role(message),
        text=str(message.text),
        tool_calls=tuple(ToolCall(call["id"] or "", call["name"], call["args"]) for call in calls),
        tool_call_id=message.tool_call_id if isinstance(message, ToolMessage) else None,
    )


def _role(message: BaseMessage) -> Role:
    # By kind and not by class: what was streamed is a chunk.
    if isinstance(message, AIMessage):
        return "assistant"
    if isinstance(message, ToolMessage):
        return "tool"
    return "system" if isinstance(message, SystemMessage) else "user"


def _content(message: BaseMessage) -> str:
    """A name for a message without an id: the same for the same content, in any process."""
    told = json.dumps([message.type, message.content, getattr(message, "tool_calls", [])], default=str)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]
