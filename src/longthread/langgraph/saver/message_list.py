"""Private copies of the log's message lists: a put finds changes by them, a load copies them.

A new list is compared with the known one: most of it is the same, in the same order.
"""

from __future__ import annotations

import asyncio
import marshal
import weakref
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, repeat
from operator import is_
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from pydantic import BaseModel

from longthread.langgraph.message_codec import KNOWN, PLAIN, build, copy_containers, copy_of, pack, showing, unpack
from longthread.messages.fields import Fields, alike

RECENT = 64
"""So many of the last messages are compared whole even where they are the very objects that they were."""
CHUNK = 64
"""So many messages are copied together."""
SeqRange = tuple[int, int, int]
"""The first and the last entry of several, and `skipped`: how many later versions of messages are among them, which are
not meant. `VERSIONS` there: all of them are later versions, and meant."""
VERSIONS = -1

_FLAT = frozenset((str, int, float, bool, type(None), bytes))
_set_dict = BaseModel.__dict__["__dict__"].__set__
_set_fields_set = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_set_extra = BaseModel.__dict__["__pydantic_extra__"].__set__
_set_private = BaseModel.__dict__["__pydantic_private__"].__set__
_MOST_COMPARED = 512


@dataclass(slots=True)
class CachedMessage:
    """A private copy of one message, with its place. `fields` is its `__dict__` and is never changed.
    If the fields are not all of it, or cannot be copied, `odd` is the message and `packed` its serialized form."""

    type: type[BaseMessage]
    fields: Fields
    seq: int
    parent_seq: int
    odd: BaseMessage | None = None
    packed: bytes = b""
    replaces: int = 0
    """The entry whose place this later version takes; 0: it has a place of its own."""
    gap: int = 0
    """How many entries directly before this one are later versions, as far as that is known."""

    @classmethod
    def of_odd(cls, message: BaseMessage, seq: int, parent_seq: int, packed: bytes | None = None) -> CachedMessage:
        return cls(type(message), message.__dict__, seq, parent_seq, message, packed or pack(message))

    def is_like(self, message: BaseMessage) -> bool:
        """Whether the message still equals this copy."""
        if self.odd is not None:
            return alike(self.odd, message)
        plain = type(message) is self.type and not message.__pydantic_extra__
        return plain and alike(self.fields, message.__dict__)

    def at_place(self, seq: int, parent_seq: int, replaces: int = 0, gap: int = 0) -> CachedMessage:
        """Copy it to another place: a list may have it at several."""
        return CachedMessage(self.type, self.fields, seq, parent_seq, self.odd, self.packed, replaces, gap)

    @property
    def place(self) -> int:
        """The entry in whose place a branch shows it."""
        return self.replaces or self.seq

    def show(self) -> BaseMessage:
        """Return a message with these very fields, only to be read."""
        return self.odd if self.odd is not None else showing(self.type, self.fields)

    def rebuilt(self, serde: SerializerProtocol) -> BaseMessage:
        """Build it again from `packed`: see `unpack`."""
        made = unpack(self.packed, serde)
        if made.id is None:
            made.id = self.fields["id"]
        return made


class MessageList:
    """An append-only list of messages. It shares nothing with callers."""

    def __init__(self, messages: Iterable[CachedMessage] = ()) -> None:
        self.seqs: list[int] = []
        """Where each message stands."""
        self.runs: list[SeqRange] = []
        """Their seqs, as ranges of consecutive ones."""
        self._messages: list[CachedMessage] = []
        self._odd: list[int] = []
        # Of each whole chunk, by its first place, the fields that are lists and objects: bytes are copied faster.
        self._chunks: dict[int, bytes] = {}
        # One message of each of the application's classes, by place, and the serializer that last allowed all of them.
        self._own: dict[type[BaseMessage], int] = {}
        self._allowed_by: SerializerProtocol | None = None
        # One list of messages, or nothing any more.
        self._held: list[list[BaseMessage]] = []
        self._last_held: weakref.ref[BaseMessage] | None = None
        self.doubts = 0
        """How often a message was given that has changed: see `doubt`."""
        self._places: dict[str, int] | None = None
        self.extend(messages)

    def __len__(self) -> int:
        return len(self.seqs)

    def at(self, place: int) -> CachedMessage:
        return self._messages[place]

    def first(self, count: int, changes: Mapping[int, CachedMessage] | None = None) -> MessageList:
        """Copy the first messages, some of them changed, by place."""
        messages = self._messages[:count]
        for place, message in (changes or {}).items():
            messages[place] = message
        copy = MessageList(messages)
        kept = (first for first in self._chunks if first + CHUNK <= count)
        copy._chunks = {first: self._chunks[first] for first in kept}
        for place in changes or {}:
            copy._chunks.pop(place - place % CHUNK, None)
        return copy

    def end(self, count: int) -> int:
        """Return the last entry of the first messages; 0 if there are none."""
        return max(self.seqs[:count], default=0)

    def extend(self, messages: Iterable[CachedMessage]) -> None:
        for place, message in enumerate(messages, len(self)):
            self._messages.append(message)
            self.seqs.append(message.seq)
            add_run(self.runs, message)
            if self._places is not None:
                self._places[message.fields["id"] or ""] = place
            if message.odd is not None:
                self._odd.append(place)
            elif message.type not in KNOWN and message.type not in self._own:
                self._own[message.type], self._allowed_by = place, None

    def place_of(self, message_id: str | None) -> int | None:
        """Return the place of the last message with this id."""
        if self._places is None:
            self._places = {message.fields["id"] or "": place for place, message in enumerate(self._messages)}
        return self._places.get(message_id or "")

    def hold(self, messages: Sequence[BaseMessage]) -> None:
        """Note that these objects are the first messages, as they are now: see `equal`.
        They are held only while the caller has the last of them: a caller that dropped that has mostly dropped all."""
        self._held = held = [list(messages[: max(0, len(messages) - RECENT)])]
        self._last_held = weakref.ref(messages[-1], lambda _: held.clear()) if messages else None

    def doubt(self) -> None:
        """Hold nothing any more: a message was given that differs from this list's. It may have been changed where it
        stands. A put that is under way must not hold it either: it may have compared it before."""
        self.doubts += 1
        self.hold([])

    def equal(self, messages: Sequence[BaseMessage]) -> int:
        """Count how many of `messages`, from the first on, equal the cached ones.

        Held objects count as unchanged, but for the last ones: a node that changes a message in place changes a new
        message.
        """
        count = min(len(messages), len(self))
        held = self.held[: max(0, count - RECENT)]
        same = list(map(is_, messages, held))
        first = same.index(False) if False in same else len(same)
        return first + self.like(messages[first:count], first)

    @property
    def held(self) -> list[BaseMessage]:
        """The objects that count as unchanged as long as they are the very ones."""
        held = next(iter(self._held), [])  # it may be dropped at any moment
        return held[: max(0, len(self) - RECENT)]

    def like(self, messages: Sequence[BaseMessage], place: int) -> int:
        """Count how many of `messages`, from the first on, equal the cached ones from `place` on."""
        mine = self._messages[place : place + len(messages)]
        given = messages[: len(mine)]
        # Nearly always they all are, and comparing whole lists is many times faster than message by message.
        plain = not self._odd and not any(each.__pydantic_extra__ for each in given)
        types, fields = [each.type for each in mine], [each.fields for each in mine]
        if plain and list(map(type, given)) == types and alike([each.__dict__ for each in given], fields):
            return len(mine)
        pairs = enumerate(zip(mine, given, strict=True))
        return next((number for number, (one, other) in pairs if not one.is_like(other)), len(mine))

    def runs_of(self, count: int) -> list[SeqRange]:
        if count == len(self):
            return list(self.runs)
        found: list[SeqRange] = []
        for message in self._messages[:count]:
            add_run(found, message)
        return found

    def starts_with(self, runs: Sequence[SeqRange]) -> int | None:
        """Count the messages of the runs if the list begins with them; else None."""
        if len(runs) > len(self.runs):
            return None
        at = 0
        for number, (mine, run) in enumerate(zip(self.runs, runs, strict=False), 1):
            if not self._begins_at(at, mine, run) or mine[1] < run[1] or (mine[1] > run[1] and number < len(runs)):
                return None
            end = at + count_of(mine)
            at = bisect_right(self.seqs, run[1], at, end)
            if self.seqs[at - 1] != run[1]:
                return None
        return at

    def _begins_at(self, place: int, mine: SeqRange, run: SeqRange) -> bool:
        """Whether a run begins with the message at a place. Retention may have cut it where a later version stands."""
        if VERSIONS in (mine[2], run[2]):
            return (mine[0], mine[2]) == (run[0], run[2])
        return mine[0] - self._messages[place].gap <= run[0] <= mine[0]

    def copies(self, count: int, serde: SerializerProtocol) -> list[BaseMessage]:
        """Copy the first `count` messages; ValueError if the serializer does not allow the class of one."""
        self._expect_allowed(count, serde)
        made = list(chain.from_iterable(self._make_chunks(count)))
        self._rebuild_odd(made, serde)
        return made

    async def held_copies(self, count: int, serde: SerializerProtocol) -> list[BaseMessage]:
        """Copy as `copies` does and hold the copies, for a run that will give them back. Others have their turn."""
        self._expect_allowed(count, serde)
        self.hold([])
        made: list[BaseMessage] = []
        for chunk in self._make_chunks(count):
            made += chunk
            await asyncio.sleep(0)  # a long list takes longer than the loop's other tasks should wait
        self._rebuild_odd(made, serde)
        for place in self._odd:
            message = self._messages[place]
            if place < count and not message.is_like(made[place]):
                as_read = message.rebuilt(serde)
                self._messages[place] = CachedMessage.of_odd(as_read, message.seq, message.parent_seq, message.packed)
        self.hold(made)
        return made

    def _rebuild_odd(self, made: list[BaseMessage], serde: SerializerProtocol) -> None:
        for place in self._odd:
            if place < len(made):
                made[place] = self._messages[place].rebuilt(serde)

    def _expect_allowed(self, count: int, serde: SerializerProtocol) -> None:
        """Ask the serializer, as decoding would: cached messages do not pass through it."""
        if not self._own or self._allowed_by is serde:
            return
        for kind, place in self._own.items():
            if place < count:
                unpack(pack(build(kind, self._messages[place].fields), serde), serde)
        self._allowed_by = serde if count == len(self) else None

    def _make_chunks(self, count: int) -> Iterator[list[BaseMessage]]:
        """Copy the first messages without the serializer's check, chunk by chunk. Odd ones are incomplete."""
        for first in range(0, count, CHUNK):  # what a processor's cache holds
            chunk = self._messages[first : min(first + CHUNK, count)]
            types = [message.type for message in chunk]
            new: list[BaseMessage] = list(map(object.__new__, types))
            fields = [message.fields.copy() for message in chunk]
            _exhaust(map(dict.update, fields, self._containers(first, chunk)))
            _exhaust(map(_set_dict, new, fields))
            _exhaust(map(_set_fields_set, new, map(_names_of, types)))
            _exhaust(map(_set_extra, new, [{} for _ in types]))
            _exhaust(map(_set_private, new, repeat(None)))
            yield new

    def _containers(self, first: int, chunk: Sequence[CachedMessage]) -> list[Fields]:
        """Copy the fields that are lists and objects, of each message of a chunk."""
        if len(chunk) < CHUNK:
            return list(map(_containers_of, chunk))
        packed = self._chunks.get(first)
        if packed is None:
            packed = self._chunks[first] = marshal.dumps(list(map(_containers_of, chunk)))
        found: list[Fields] = marshal.loads(packed)
        return found


def add_run(runs: list[SeqRange], message: CachedMessage) -> None:
    """Add a message to runs: to the last one, if there is nothing between but later versions."""
    seq, replaces = message.seq, message.replaces
    if runs:
        first, last, skipped = runs[-1]
        if replaces:
            if skipped == VERSIONS and last == seq - 1:
                runs[-1] = (first, seq, VERSIONS)
                return
        elif skipped >= 0 and seq - 1 - message.gap <= last < seq:
            runs[-1] = (first, seq, skipped + seq - 1 - last)
            return
    runs.append((seq, seq, VERSIONS if replaces else 0))


def count_of(run: SeqRange) -> int:
    """Return how many messages a run has."""
    first, last, skipped = run
    return last - first + 1 - max(skipped, 0)


def private(message: BaseMessage, seq: int, parent_seq: int, serde: SerializerProtocol = PLAIN) -> CachedMessage:
    """Copy a message so that nothing is shared with it. `serde` packs one that cannot be copied field by field."""
    if message.__pydantic_extra__ or message.__pydantic_private__ or not _is_plain(message.__dict__):
        copy = copy_of(message, serde)
        return CachedMessage.of_odd(copy, seq, parent_seq, pack(copy, serde))
    return CachedMessage(type(message), copy_containers(message.__dict__), seq, parent_seq)


def _containers_of(message: CachedMessage) -> Fields:
    # Copied also where they are packed: what two messages share would be shared by what is made of the bytes.
    if message.odd is not None:
        return {}
    fields = message.fields.items()
    return {
        name: copy_containers(value) if value else value.copy() for name, value in fields if type(value) not in _FLAT
    }


def _exhaust(steps: Iterator[Any]) -> None:
    deque(steps, maxlen=0)


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind in _FLAT:
        return True
    if kind is dict:
        return all(map(_is_plain, value.keys())) and all(map(_is_plain, value.values()))
    return kind is list and all(map(_is_plain, value))


@cache
def _names_of(kind: type[BaseMessage]) -> set[str]:
    # Shared by all messages of a kind: pydantic only ever adds names of fields to it, and these are all there are.
    return set(kind.model_fields)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Messages of a list that are the known ones from `first` on; if `changed`, one under the same id."""

    first: int
    count: int
    changed: bool = False


@dataclass(slots=True)
class Alignment:
    """The first `count` messages of a list are known ones, in the known order; they are in `stretches`."""

    known: MessageList
    stretches: list[Stretch] = field(default_factory=list)
    count: int = 0

    @classmethod
    def of(cls, known: MessageList, messages: Sequence[BaseMessage]) -> Alignment:
        found = cls(known)
        comparison = _Comparison(known, messages)
        place = 0
        while found.count < len(messages):
            if same := comparison.same(found.count, place):
                found._add(Stretch(place, same))
                place += same
                continue
            message = messages[found.count]
            at = known.place_of(message.id) if message.id else None
            if at is None or at < place:
                break
            if at > place and known.at(at).is_like(message):
                place = at  # the list leaves out those before it
                continue
            found._add(Stretch(at, 1, changed=True))
            place = at + 1
        return found

    @classmethod
    def whole(cls, known: MessageList) -> Alignment:
        """Return that of a list which begins with all of the known messages."""
        count = len(known)
        return cls(known, [Stretch(0, count)] if count else [], count)

    def _add(self, stretch: Stretch) -> None:
        self.stretches.append(stretch)
        self.count += stretch.count

    @property
    def in_front(self) -> int:
        """How many of the messages stand where the known ones do: none before them is left out."""
        count = 0
        for each in self.stretches:
            if each.first != count:
                break
            count += each.count
        return count

    @property
    def is_whole(self) -> bool:
        """Whether the list begins with all of the known messages, unchanged."""
        return self.in_front == self.count == len(self.known) and not any(each.changed for each in self.stretches)

    @property
    def places(self) -> list[int]:
        """The known place of each message."""
        return [place for each in self.stretches for place in range(each.first, each.first + each.count)]

    @property
    def changed_places(self) -> dict[int, int]:
        """The places of the messages that have changed: in the list, and in the known one."""
        found, at = dict[int, int](), 0
        for each in self.stretches:
            if each.changed:
                found[at] = each.first
            at += each.count
        return found

    @property
    def behind(self) -> int:
        """The known place after the last of the messages."""
        return self.stretches[-1].first + self.stretches[-1].count if self.stretches else 0

    @property
    def last(self) -> CachedMessage | None:
        """The last of the known messages."""
        return self.known.at(self.behind - 1) if self.stretches else None

    def leaves_out_before(self, end: int) -> bool:
        """Whether a known message that the list ends without is on the branch up to entry `end`."""
        return self.behind < len(self.known) and self.known.at(self.behind).place <= end


class _Comparison:
    def __init__(self, known: MessageList, messages: Sequence[BaseMessage]) -> None:
        self._known = known
        self._messages = messages
        self._held = known.held
        self._offset: int | None = None
        self._start = 0
        self._same: list[bool] = []
        self._size = _MOST_COMPARED

    def same(self, at: int, place: int) -> int:
        """Count the messages from `at` on that equal the known ones from `place` on; it may be asked for more."""
        if place < len(self._held):
            if self._offset != place - at:
                self._offset, self._start = place - at, at
                self._same = list(map(is_, self._messages[at:], self._held[place:]))
            begin = at - self._start
            end = self._same.index(False, begin) if False in self._same[begin:] else len(self._same)
            if end > begin:
                return end - begin
        # Neighbours of an equal message are mostly equal: as many more are compared at once.
        count = self._known.like(self._messages[at : at + self._size], place)
        self._size = min(2 * self._size, _MOST_COMPARED) if count == self._size else max(1, count)
        return count
