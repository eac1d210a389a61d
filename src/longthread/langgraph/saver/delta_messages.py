"""Pure: the messages of a delta channel after what was written to it.

LangGraph hands over a `DeltaChannel`'s list only now and then, as a snapshot, and else what tasks have written to it.
The list is the last snapshot's with the writes since: each adds messages, replaces some by their ids, or removes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import BaseMessage, RemoveMessage, convert_to_messages
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Overwrite

from longthread.langgraph.saver.message_list import CachedMessage, MessageList
from longthread.messages.fields import alike

_OVERWRITE = "__overwrite__"  # LangGraph's key of an Overwrite that came as JSON
_NAMES_OF_KIND = frozenset(("role", "type"))
_NOT_CONVERTED = (NotImplementedError, ValueError, TypeError, LookupError, AttributeError)


@dataclass(frozen=True, slots=True)
class DeltaWrite:
    """A write to a delta channel. `place` names it for good: the checkpoint, the task, and the write's index."""

    place: str
    value: Any

    @property
    def resets(self) -> bool:
        return isinstance(self.value, Overwrite) or (isinstance(self.value, dict) and self.value.keys() == {_OVERWRITE})

    @property
    def content(self) -> Any:
        """What is written, without the `Overwrite` around it."""
        if not self.resets:
            return self.value
        return self.value.value if isinstance(self.value, Overwrite) else self.value[_OVERWRITE]

    def items(self) -> list[Any]:
        """Return what is written, without what retention has deleted."""
        value = self.content
        is_many = isinstance(value, list) or (self.resets and isinstance(value, tuple))
        return [each for each in (value if is_many else [value]) if each is not None]

    def messages(self) -> list[BaseMessage] | None:
        """Return its messages; what LangGraph would make one of gets an id by its place. None: something is none."""
        found: list[BaseMessage] = []
        for number, item in enumerate(self.items()):
            message = as_message(item)
            if message is None:
                return None
            found.append(message if message.id else with_id(message, self.place, number))
        return found

    def identified(self) -> Any:
        """Return the value with ids: what is no message yet becomes one, so that it has one id in every read."""
        items, messages = self.items(), self.messages()
        is_whole = not isinstance(self.value, list) or len(items) == len(self.value)
        if messages is None or (is_whole and all(map(_has_id, items))):
            return self.value
        if self.resets:
            return Overwrite(messages)
        return messages if isinstance(self.value, list) or not messages else messages[0]


def with_id(message: BaseMessage, place: str, number: int) -> BaseMessage:
    """Copy a message without an id, with one that its place decides."""
    return message.model_copy(update={"id": str(uuid5(NAMESPACE_OID, f"{place}:{number}"))})


def holds_messages(writes: Iterable[DeltaWrite]) -> bool:
    """Whether one of these writes holds a message as such: the channel's reducer then takes them."""
    return any(isinstance(item, BaseMessage) for write in writes for item in write.items())


def applied(base: Sequence[BaseMessage], writes: Iterable[DeltaWrite]) -> list[BaseMessage] | None:
    """Return the list after these writes; None if one of them is not made of messages."""
    found: dict[str, BaseMessage] = {str(message.id): message for message in base}
    for write in writes:
        messages = write.messages()
        if messages is None:
            return None
        if write.resets:
            found = {}
        for message in messages:
            if not isinstance(message, RemoveMessage):
                found[str(message.id)] = message
            elif message.id == REMOVE_ALL_MESSAGES:
                found = {}
            else:
                found.pop(str(message.id), None)
    return list(found.values())


def appended(known: MessageList, writes: Sequence[DeltaWrite]) -> list[BaseMessage] | None:
    """Return what the writes append to a list; None if they do anything else."""
    found: dict[str, BaseMessage] = {}
    for write in writes:
        messages = None if write.resets else write.messages()
        if messages is None:
            return None
        for message in messages:
            if isinstance(message, RemoveMessage) or message.id in found or known.place_of(message.id) is not None:
                return None
            found[str(message.id)] = message
    return list(found.values())


@dataclass(slots=True)
class SnapshotNames:
    """Ids for a snapshot's messages that have none: those that the log knows them by, or new ones by their places."""

    known: MessageList | None
    place: str
    by_object: dict[int, str] = field(default_factory=dict)
    """The id of each message object that had none."""

    def named(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        found: list[BaseMessage] = []
        last = 0
        for number, message in enumerate(messages):
            if message.id:
                found.append(message)
                continue
            at = self._next_like(message, last)
            named = with_id(message, self.place, number) if at is None else self._as(message, at)
            last = last if at is None else at + 1
            self.by_object[id(message)] = str(named.id)
            found.append(named)
        return found

    def _next_like(self, message: BaseMessage, start: int) -> int | None:
        if self.known is None:
            return None
        places = range(start, len(self.known))
        return next((at for at in places if _is_but_for_id(self.known.at(at), message)), None)

    def _as(self, message: BaseMessage, at: int) -> BaseMessage:
        assert self.known is not None
        return message.model_copy(update={"id": self.known.at(at).fields["id"]})


def _is_but_for_id(known: CachedMessage, message: BaseMessage) -> bool:
    if known.odd is not None or known.type is not type(message):
        return False
    return alike(known.fields, {**message.__dict__, "id": known.fields["id"]})


def as_message(item: Any) -> BaseMessage | None:
    """Return what LangGraph makes of an item of a list of messages; None if that is none."""
    if isinstance(item, BaseMessage):
        return item
    if isinstance(item, dict) and _NAMES_OF_KIND.isdisjoint(item):
        return None
    if isinstance(item, str | tuple | list | dict):
        with suppress(*_NOT_CONVERTED):
            return convert_to_messages([item])[0]
    return None


def _has_id(item: Any) -> bool:
    return isinstance(item, BaseMessage) and bool(item.id)
