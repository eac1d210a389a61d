"""Lists of messages that the log holds, as private copies: to tell what has changed, and to give away unread."""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from itertools import repeat
from operator import attrgetter, is_
from sys import getrefcount
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from pydantic import BaseModel

from longthread.agent.collector import paused
from longthread.agent.containers import FLAT, Containers
from longthread.agent.listed import Listed
from longthread.agent.messages import KNOWN, build, copied, copy_of, pack, showing, unpack
from longthread.messages.fields import Fields, alike

RECENT = 64
"""So many of the last messages are compared whole even where they are the very objects that they were."""
STRETCH = 256
"""So many messages are made at a time: as many as a processor's cache holds."""
Run = tuple[int, int]
"""The first and the last of seqs that follow one another."""

_fields_of = attrgetter("__dict__")
_extra_of = attrgetter("__pydantic_extra__")
_set_dict = BaseModel.__dict__["__dict__"].__set__
_set_fields_set = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_set_extra = BaseModel.__dict__["__pydantic_extra__"].__set__
_set_private = BaseModel.__dict__["__pydantic_private__"].__set__
_COUNTED = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether an object's references are all counted, so that it can be told whether somebody else still has it."""


class Message:
    """A private copy of one message, and where it stands. `fields` is its `__dict__`; nothing of it is ever changed.

    Where the fields do not say it all, or cannot be copied, `odd` is the message and `packed` what makes it anew.
    """

    __slots__ = ("fields", "odd", "packed", "parent_seq", "seq", "type")

    def __init__(
        self,
        message: BaseMessage | tuple[type[BaseMessage], Fields],
        seq: int,
        parent_seq: int,
        packed: bytes | None = None,
    ) -> None:
        self.odd: BaseMessage | None = None
        self.packed = b""
        if isinstance(message, BaseMessage):
            self.type, self.fields = type(message), message.__dict__
            self.odd, self.packed = message, packed or pack(message)
        else:
            self.type, self.fields = message
        self.seq = seq
        self.parent_seq = parent_seq

    def is_like(self, message: BaseMessage) -> bool:
        """Whether the message is still what this one says."""
        if self.odd is not None:
            return alike(self.odd, message)
        plain = type(message) is self.type and not message.__pydantic_extra__
        return plain and alike(self.fields, message.__dict__)

    def standing(self, seq: int, parent_seq: int) -> Message:
        """The same at a place. A list may have it at several."""
        message = self.odd if self.odd is not None else (self.type, self.fields)
        return Message(message, seq, parent_seq, self.packed)

    def shown(self) -> BaseMessage:
        """A message with these very fields: to be looked at, and neither kept nor changed."""
        return self.odd if self.odd is not None else showing(self.type, self.fields)

    def anew(self, serde: SerializerProtocol) -> BaseMessage:
        """What makes it anew, made: see `unpack`."""
        made = unpack(self.packed, serde)
        if made.id is None:
            made.id = self.fields["id"]
        return made


class Kept:
    """A list of messages. It only grows; what was given away is never seen again here."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.seqs: list[int] = []
        """Where each message stands."""
        self.runs: list[Run] = []
        """Their seqs, those that follow one another together."""
        self._parent_seqs: list[int] = []
        self._fields: list[Fields] = []
        self._types: list[type[BaseMessage]] = []
        self._names: list[set[str]] = []
        self._containers = Containers()
        self._odd: dict[int, Message] = {}
        # The first places of classes of the application's, and the serializer that last was seen to allow them all.
        self._own: dict[type[BaseMessage], int] = {}
        self._allowed_by: SerializerProtocol | None = None
        # Copies of the first messages that were given away, the last two times; mostly they come back.
        self._lent: list[list[BaseMessage]] = []
        # One list of messages, or nothing any more.
        self._held: list[list[BaseMessage]] = []
        self._last_held: weakref.ref[BaseMessage] | None = None
        self._places: dict[str, int] | None = None
        self.extend(messages)

    @classmethod
    def of(
        cls,
        messages: Sequence[BaseMessage | tuple[type[BaseMessage], Fields]],
        seqs: Sequence[int],
        parent_seqs: Sequence[int],
        varied: Set[str],
        packed: Mapping[int, bytes],
    ) -> Kept:
        """Many messages at once.

        Args:
            messages: those of one class that are given as fields have the same ones.
            varied: fields that may be lists or objects. All others are texts and the like, or empty: the same in all
                messages of a class.
            packed: by its place, what makes a message anew that is not given as fields.
        """
        kept = cls()
        kept.seqs, kept._parent_seqs = list(seqs), list(parent_seqs)
        plain: dict[type[BaseMessage], list[int]] = {}
        for place, message in enumerate(messages):
            if isinstance(message, tuple):
                kind, fields = message
                plain.setdefault(kind, []).append(place)
            else:
                kind, fields = type(message), message.__dict__
                kept._odd[place] = Message(message, seqs[place], parent_seqs[place], packed.get(place))
            kept._types.append(kind)
            kept._fields.append(fields)
        kept._names = list(map(_names_of, kept._types))
        if kept.seqs and kept.seqs == list(range(seqs[0], seqs[0] + len(seqs))):
            kept.runs.append((seqs[0], seqs[-1]))
        else:
            for seq in seqs:
                add_run(kept.runs, seq, seq)
        kept._containers.add_all(kept._fields, plain, varied)
        return kept

    def __len__(self) -> int:
        return len(self.seqs)

    @property
    def spare(self) -> int:
        """How many copies there are to be lent again."""
        return sum(map(len, self._lent))

    def at(self, place: int) -> Message:
        """The message at this place."""
        odd = self._odd.get(place)
        if odd is not None:
            return odd
        return Message((self._types[place], self._fields[place]), self.seqs[place], self._parent_seqs[place])

    def first(self, count: int) -> Kept:
        """A list of the first messages."""
        return Kept(map(self.at, range(count)))

    def extend(self, messages: Iterable[Message]) -> None:
        """Append messages."""
        for message in messages:
            place = len(self.seqs)
            self.seqs.append(message.seq)
            self._parent_seqs.append(message.parent_seq)
            self._fields.append(message.fields)
            self._types.append(message.type)
            self._names.append(_names_of(message.type))
            if self._places is not None:
                self._places[message.fields["id"] or ""] = place
            add_run(self.runs, message.seq, message.seq)
            if message.odd is not None:
                self._odd[place] = message
            else:
                if message.type not in KNOWN and message.type not in self._own:
                    self._own[message.type], self._allowed_by = place, None
                self._containers.add(place, message.fields)

    def place_of(self, message_id: str | None) -> int | None:
        """Where in the list the message of this id is: the last one, if there are several."""
        if self._places is None:
            self._places = {fields["id"] or "": place for place, fields in enumerate(self._fields)}
        return self._places.get(message_id or "")

    def hold(self, messages: Listed) -> None:
        """Note that these objects are the first messages, as they are now: see `equal`.

        Only while somebody else has the last of them: whoever has dropped that has mostly dropped them all.
        """
        last = messages.since(len(messages) - 1)
        mine, count = messages.objects, messages.count
        more = messages.rest[: max(0, len(messages.rest) - RECENT)]
        if mine is self._objects and len(mine) == count:
            mine += more
        else:
            mine = mine[: min(count, max(0, len(messages) - RECENT))] + more
        self._held = held = [mine]
        self._last_held = weakref.ref(last[0], lambda _: held.clear()) if last else None

    def listed(self, messages: list[BaseMessage]) -> Listed:
        """A list as it is now. What is held are its first messages, if they all are that could be. From any thread."""
        objects = self._objects
        count = min(len(messages), len(objects))
        if count and all(map(is_, messages, objects)):
            return Listed(messages[count:], objects, count)
        return Listed(messages.copy(), objects)

    @property
    def _objects(self) -> list[BaseMessage]:
        return next(iter(self._held), [])  # it may be dropped at any moment

    def equal(self, messages: Listed) -> int:
        """How many of `messages`, from their first on, are equal to those kept.

        Objects that are held are taken for what they were, but for the last ones: who changes a message in its place,
        and does not return another one, does so to a new one.
        """
        if messages.objects is not self._objects:
            messages = self.listed(messages.since(0))
        count = min(len(messages), len(self))
        same = max(0, min(messages.count, count - RECENT))
        return same + self.like(messages.since(same, count), same)

    def like(self, messages: Sequence[BaseMessage], place: int) -> int:
        """How many of `messages`, from their first on, are equal to those kept from `place` on."""
        count = min(len(messages), len(self) - place)
        given = messages if count == len(messages) else messages[:count]
        if not self._odd:
            # Nearly always they all are, and comparing whole lists is many times faster than message by message.
            whole = place == 0 and count == len(self)
            fields, types = (self._fields, self._types) if whole else self._between(place, place + count)
            same_types = list(map(type, given)) == types
            if same_types and not any(map(_extra_of, given)) and alike(list(map(_fields_of, given)), fields):
                return count
        for number, message in enumerate(given):
            if not self.at(place + number).is_like(message):
                return number
        return count

    def runs_of(self, count: int) -> list[Run]:
        """The seqs of the first `count` messages."""
        if count == len(self):
            return list(self.runs)
        found: list[Run] = []
        for seq in self.seqs[:count]:
            add_run(found, seq, seq)
        return found

    def starts_with(self, runs: Sequence[Run]) -> int | None:
        """How many messages the runs are, if the list begins with them; else None."""
        if not runs:
            return 0
        *whole, (first, last) = runs
        mine = self.runs[: len(runs)]
        if mine[:-1] != whole or len(mine) != len(runs) or mine[-1][0] != first or mine[-1][1] < last:
            return None
        return sum(end - start + 1 for start, end in runs)

    def copies(self, count: int, serde: SerializerProtocol) -> list[BaseMessage]:
        """The first `count` messages, for the caller to keep and to change.

        Raises:
            ValueError: the serializer does not allow the class of one.
        """
        self._expect_allowed(count, serde)
        with paused():
            return self._with_odd(self._made(0, count), serde)

    def lend(self, count: int, serde: SerializerProtocol) -> list[BaseMessage]:
        """The first `count` messages, for the caller to keep and to change, and held: see `hold`.

        They are objects of an earlier time, made as they were, when nobody else has one of them any more: that is
        several times faster than to make and to destroy as many.

        Raises:
            ValueError: the serializer does not allow the class of one.
        """
        self.hold(Listed([]))
        self._expect_allowed(count, serde)
        with paused():
            lent = self._returned(count)
            lent += self._made(len(lent), count)
        self._lent = [*self._lent[-1:], lent]
        given = self._with_odd(lent.copy(), serde, goes_on=True)
        self.hold(Listed(given.copy()))
        return given

    def call_in(self) -> None:
        """Lend nothing again of what was lent."""
        self._lent.clear()

    def _expect_allowed(self, count: int, serde: SerializerProtocol) -> None:
        """What is not read is not stopped by the serializer: it is asked, so that it is as if it were read."""
        if not self._own or self._allowed_by is serde:
            return
        for kind, place in self._own.items():
            if place < count:
                unpack(pack(build(kind, self._fields[place])), serde)
        self._allowed_by = serde if count == len(self) else None

    def _with_odd(
        self, made: list[BaseMessage], serde: SerializerProtocol, *, goes_on: bool = False
    ) -> list[BaseMessage]:
        """`goes_on`: who is given the messages will give them back, and what they are now is what they were."""
        for place, message in self._odd.items():
            if place < len(made):
                made[place] = message.anew(serde)
                if goes_on and not message.is_like(made[place]):
                    as_read = message.anew(serde)
                    self._odd[place] = Message(as_read, message.seq, message.parent_seq, message.packed)
        return made

    def _returned(self, count: int) -> list[BaseMessage]:
        """The first copies of a list that was lent, as they were then, if nobody else has one of them."""
        alone = next(map(getrefcount, [object()]))
        # The last one lent first: more of it is in the processor's cache.
        for number in reversed(range(len(self._lent) if _COUNTED else 0)):
            lent = self._lent[number]
            if {alone}.issuperset(map(getrefcount, lent)) and not any(map(weakref.getweakrefcount, lent)):
                del self._lent[number], lent[count:]
                whole = all(self._restored(lent[first : first + STRETCH], first) for first in range(0, count, STRETCH))
                return lent if whole else []
        return []

    def _restored(self, lent: list[BaseMessage], first: int) -> bool:
        """Whether messages from place `first` on say what they did, once they have lists and objects of their own."""
        fields = list(map(_fields_of, lent))
        alone = next(map(getrefcount, [object()])) + 1
        if any(map(_extra_of, lent)) or not {alone}.issuperset(map(getrefcount, fields)):
            return False
        if list(map(type, lent)) != self._types[first : first + len(lent)]:
            return False
        self._containers.fill(fields, first)
        return alike(fields, self._fields[first : first + len(fields)])

    def _made(self, first: int, stop: int) -> list[BaseMessage]:
        made: list[BaseMessage] = []
        for start in range(first, stop, STRETCH):
            made += self._made_at_once(start, min(stop, start + STRETCH))
        return made

    def _made_at_once(self, first: int, stop: int) -> list[BaseMessage]:
        types = self._types[first:stop]
        made: list[BaseMessage] = list(map(object.__new__, types))
        fields = list(map(dict.copy, self._fields[first:stop]))
        self._containers.fill(fields, first)
        _exhaust(map(_set_dict, made, fields))
        _exhaust(map(_set_fields_set, made, self._names[first:stop]))
        _exhaust(map(_set_extra, made, [{} for _ in types]))
        _exhaust(map(_set_private, made, repeat(None)))
        return made

    def _between(self, first: int, stop: int) -> tuple[list[Fields], list[type[BaseMessage]]]:
        return self._fields[first:stop], self._types[first:stop]


def add_run(runs: list[Run], first: int, last: int) -> None:
    """Append seqs to runs of them."""
    if runs and runs[-1][1] == first - 1:
        runs[-1] = (runs[-1][0], last)
    else:
        runs.append((first, last))


def seqs_of(runs: Iterable[Run]) -> Iterator[int]:
    """The seqs of runs, one by one."""
    for first, last in runs:
        yield from range(first, last + 1)


def private(message: BaseMessage, seq: int, parent_seq: int) -> Message:
    """A message of which nothing is shared with the one that is given."""
    if message.__pydantic_extra__ or message.__pydantic_private__ or not _is_plain(message.__dict__):
        return Message(copy_of(message), seq, parent_seq)
    return Message((type(message), copied(message.__dict__)), seq, parent_seq)


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind in FLAT:
        return True
    if kind is dict:
        return all(map(_is_plain, value.keys())) and all(map(_is_plain, value.values()))
    return kind is list and all(map(_is_plain, value))


@cache
def _names_of(kind: type[BaseMessage]) -> set[str]:
    # Shared by all messages of a kind: pydantic only ever adds names of fields to it, and these are all there are.
    return set(kind.model_fields)


def _exhaust(steps: Iterator[Any]) -> None:
    deque(steps, maxlen=0)
