"""The stored form of a channel's value or a task's write: a message in it is a reference to the log.

And the versions of channels, which count up.

Questions to a person, their answers, results of tasks and errors: a run that goes on replays them by place, so none
is taken out.
"""

from __future__ import annotations

import copy
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Protocol

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME
from langgraph.types import Interrupt, Overwrite, Send
from pydantic import BaseModel

from longthread.langgraph.internals import DeltaSnapshot
from longthread.langgraph.message_codec import copy_containers, is_own, pack, read_through, unpack
from longthread.langgraph.saver.message_list import SeqRange, count_of
from longthread.messages.fields import Fields, alike
from longthread.model.entry import Entry

_SCALARS = frozenset((str, int, float, bool, type(None), bytes))
ATTRIBUTES: dict[type, str] = {Send: "arg", Overwrite: "value", DeltaSnapshot: "value"}
"""What is looked into besides lists, tuples and objects."""
_NOTHING = "null"
MESSAGES, _LIST, _TUPLE, _OBJECT, _ATTRIBUTE = "m", "l", "t", "d", "a"
"""Kinds of gaps. The first is a list of nothing but messages of the log."""
_INLINE = "i"


class SeqFinder(Protocol):
    def seqs(self, items: Sequence[Any]) -> list[int | None]:
        """Return the seq of each item that is a message of the log, else None."""
        ...


class MessageSource(Protocol):
    def messages(self, first: int, last: int, *, skips: bool = False) -> list[BaseMessage]:
        """Return new objects for the existing messages with these seqs; if it `skips`, without later versions."""
        ...


@dataclass(slots=True)
class InlineMessage:
    """A message that the log did not hold when the value was stored, packed.
    `message` is the caller's own, and `fields` its content then; both are None after reading."""

    body: bytes
    message: BaseMessage | None = None
    fields: Fields | None = None


@dataclass(slots=True)
class MessageGap:
    """A container without its messages. `runs` of a list are (place, first, last, skipped), ordered by place: see
    `SeqRange`. `inner` has the gaps of items by place, key or attribute."""

    kind: str
    runs: list[tuple[int, int, int, int]] = field(default_factory=list)
    inner: list[tuple[Any, Hole]] = field(default_factory=list)


Hole = int | InlineMessage | MessageGap
"""What a serialized value lacks: a message by its seq, one that is inline, or a container with such holes."""


@dataclass(slots=True)
class ChannelValue:
    """A value: its serialized form without messages, and where those belong.
    `stored_by` is the number of the checkpoint that stored a large value separately."""

    kind: str
    body: bytes
    hole: Hole | None = None
    stored_by: int | None = None

    @property
    def size(self) -> int:
        """Its approximate size in bytes."""
        return len(self.body) + (_size(self.hole) if self.hole is not None else 0)

    def to_json(self, parts: list[bytes]) -> Any:
        """Convert it to JSON; its bytes are appended to `parts` in order."""
        if self.kind == _NOTHING and self.hole is None:
            return 0
        parts.append(self.body)
        head: list[Any] = [self.kind, len(self.body)]
        return head if self.hole is None else [*head, _to_json(self.hole, parts)]

    @classmethod
    def from_json(cls, data: Any, take: Callable[[int], bytes]) -> ChannelValue:
        """Invert `to_json`; `take` returns the next bytes."""
        if data == 0:
            return cls(_NOTHING, b"")
        kind, length, *rest = data
        body = take(length)
        return cls(kind, body, _from_json(rest[0], take) if rest else None)

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of entries that cover the entries it refers to."""
        if self.hole is not None:
            yield from _runs(self.hole)

    def value(self, serde: SerializerProtocol, source: MessageSource) -> Any:
        bare = read_through(serde, self.kind, self.body)
        return bare if self.hole is None else _fill_hole(bare, self.hole, source, serde)

    @property
    def has_inline(self) -> bool:
        return self.hole is not None and _has_inline(self.hole)

    def settle(self, seq_of: Callable[[InlineMessage], int | None]) -> ChannelValue:
        """Replace inline messages that the log holds now by references; return itself if there is none."""
        hole = _settle_hole(self.hole, seq_of) if self.hole is not None else None
        return self if hole is self.hole else ChannelValue(self.kind, self.body, hole, self.stored_by)

    def differs(self, other: ChannelValue, serde: SerializerProtocol) -> bool:
        """Whether the values differ, as far as that is known without reading the log."""
        if (self.kind, self.body) != (other.kind, other.body):
            # The same value may be serialized in several ways: a set has no order.
            ours, theirs = (read_through(serde, cell.kind, cell.body) for cell in (self, other))
            if not alike(ours, theirs):
                return True
        return _differ(self.hole, other.hole, serde)


def next_version(current: Any) -> Any:
    """Return the next version, of the same kind: a number, or a text as LangGraph's own savers write it."""
    if current is None:
        return 1
    if not isinstance(current, str):
        return current + 1
    count, point, _ = current.partition(".")
    counted = f"{int(count) + 1:0{len(count)}}"
    return f"{counted}.{random.random():016}" if point else counted


def cell_of(value: Any, serde: SerializerProtocol, finder: SeqFinder) -> ChannelValue:
    if value is None:
        return ChannelValue(_NOTHING, b"")
    bare, hole = _split(value, finder, serde)
    return ChannelValue(*serde.dumps_typed(bare), hole)


def cell_of_runs(runs: Sequence[SeqRange], serde: SerializerProtocol) -> ChannelValue:
    place, found = 0, list[tuple[int, int, int, int]]()
    for run in runs:
        found.append((place, *run))
        place += count_of(run)
    return ChannelValue(*serde.dumps_typed([]), MessageGap(MESSAGES, found))


def _split(value: Any, finder: SeqFinder, serde: SerializerProtocol) -> tuple[Any, Hole | None]:
    kind = type(value)
    if kind in _SCALARS:
        return value, None
    if isinstance(value, BaseMessage):
        return None, _message(value, finder.seqs([value])[0], serde)
    if kind is list:
        return _split_list(value, finder, serde)
    if kind is tuple:
        gap = MessageGap(_TUPLE)
        return tuple(_each(enumerate(value), gap, finder, serde)), _if_any(gap)
    if kind is dict and is_own(serde):
        return value, None  # a gap would name its keys
    if kind is dict:
        gap = MessageGap(_OBJECT)
        items = zip(value, _each(value.items(), gap, finder, serde), strict=True)
        return dict(items), _if_any(gap)
    if kind in ATTRIBUTES:
        gap = MessageGap(_ATTRIBUTE)
        name = ATTRIBUTES[kind]
        [inner] = _each([(name, getattr(value, name))], gap, finder, serde)
        return (with_attribute(value, name, inner), gap) if gap.inner else (value, None)
    return value, None


def _split_list(value: list[Any], finder: SeqFinder, serde: SerializerProtocol) -> tuple[Any, Hole | None]:
    if _SCALARS.issuperset(map(type, value)):
        return value, None
    gap = MessageGap(_LIST)
    bare: list[Any] = []
    seqs = finder.seqs(value)
    for place, (item, seq) in enumerate(zip(value, seqs, strict=True)):
        if seq is not None:
            _add_place(gap.runs, place, seq)
        elif isinstance(item, BaseMessage):
            gap.inner.append((place, _message(item, None, serde)))
            bare.append(None)
        else:
            bare += _each([(place, item)], gap, finder, serde)
    return bare, _if_any(gap)


def _each(items: Any, gap: MessageGap, finder: SeqFinder, serde: SerializerProtocol) -> list[Any]:
    found = []
    for key, item in items:
        # A key that is no text would not come back from JSON: what is under it stays whole.
        is_name = isinstance(key, str | int) and type(key) is not bool
        bare, hole = _split(item, finder, serde) if is_name else (item, None)
        if hole is not None:
            gap.inner.append((key, hole))
        found.append(bare)
    return found


def _message(message: BaseMessage, seq: int | None, serde: SerializerProtocol) -> Hole:
    return seq if seq is not None else InlineMessage(pack(message, serde), message, copy_containers(message.__dict__))


def _if_any(gap: MessageGap) -> MessageGap | None:
    return gap if gap.runs or gap.inner else None


def _add_place(runs: list[tuple[int, int, int, int]], place: int, seq: int) -> None:
    if runs:
        at, first, last, _ = runs[-1]
        if seq == last + 1 and place == at + last - first + 1:
            runs[-1] = (at, first, seq, 0)
            return
    runs.append((place, seq, seq, 0))


def with_attribute(value: Any, name: str, inner: Any) -> Any:
    if isinstance(value, DeltaSnapshot):
        return DeltaSnapshot(inner)
    made = copy.copy(value)
    setattr(made, name, inner)
    return made


def _fill_hole(bare: Any, hole: Hole, source: MessageSource, serde: SerializerProtocol) -> Any:
    if isinstance(hole, int):
        found = source.messages(hole, hole)
        return found[0] if found else None
    if isinstance(hole, InlineMessage):
        return unpack(hole.body, serde)
    if hole.kind in (_LIST, MESSAGES):
        return _filled_list(bare, hole, source, serde)
    if hole.kind == _ATTRIBUTE:
        [(name, inner)] = hole.inner
        return with_attribute(bare, name, _fill_hole(getattr(bare, name), inner, source, serde))
    filled = list(bare) if hole.kind == _TUPLE else bare
    for key, inner in hole.inner:
        filled[key] = _fill_hole(filled[key], inner, source, serde)
    return type(bare)(filled) if hole.kind == _TUPLE else filled


def _filled_list(bare: list[Any], gap: MessageGap, source: MessageSource, serde: SerializerProtocol) -> list[Any]:
    items = iter(bare)
    inner = dict(gap.inner)
    filled: list[Any] = []
    missing = 0
    for place, first, last, skipped in gap.runs:
        while len(filled) + missing < place:
            filled.append(_item(items, inner, len(filled) + missing, source, serde))
        messages = source.messages(first, last, skips=skipped > 0)
        missing += count_of((first, last, skipped)) - len(messages)
        filled = filled + messages if filled else messages
    for item in items:
        at = len(filled) + missing
        filled.append(_fill_hole(item, inner[at], source, serde) if at in inner else item)
    return filled


def _item(
    items: Iterator[Any], inner: dict[Any, Hole], place: int, source: MessageSource, serde: SerializerProtocol
) -> Any:
    for item in items:
        return _fill_hole(item, inner[place], source, serde) if place in inner else item
    raise ValueError("it has fewer items than places")


def _has_inline(hole: Hole) -> bool:
    return isinstance(hole, InlineMessage) or (
        isinstance(hole, MessageGap) and any(_has_inline(inner) for _, inner in hole.inner)
    )


def _settle_hole(hole: Hole, seq_of: Callable[[InlineMessage], int | None]) -> Hole:
    if isinstance(hole, InlineMessage):
        seq = seq_of(hole)
        return hole if seq is None else seq
    if isinstance(hole, MessageGap) and _has_inline(hole):
        inner = [(key, _settle_hole(each, seq_of)) for key, each in hole.inner]
        if any(new is not old for (_, new), (_, old) in zip(inner, hole.inner, strict=True)):
            return MessageGap(hole.kind, hole.runs, inner)
    return hole


def _differ(one: Hole | None, other: Hole | None, serde: SerializerProtocol) -> bool:
    if isinstance(one, InlineMessage) and isinstance(other, InlineMessage):
        # What a cipher makes of a message differs each time.
        return one.body != other.body and not (
            is_own(serde) and alike(unpack(one.body, serde), unpack(other.body, serde))
        )
    if isinstance(one, MessageGap) and isinstance(other, MessageGap):
        ours, theirs = dict(one.inner), dict(other.inner)
        return any(_differ(ours[key], theirs[key], serde) for key in ours.keys() & theirs.keys())
    return isinstance(one, int) and isinstance(other, int) and one != other


def _runs(hole: Hole) -> Iterator[tuple[int, int]]:
    if isinstance(hole, int):
        yield hole, hole
    elif isinstance(hole, MessageGap):
        for _, first, last, _ in hole.runs:
            yield first, last
        for _, inner in hole.inner:
            yield from _runs(inner)


def _size(hole: Hole) -> int:
    if isinstance(hole, InlineMessage):
        return len(hole.body)
    if isinstance(hole, MessageGap):
        return 12 * len(hole.runs) + sum(8 + _size(inner) for _, inner in hole.inner)
    return 4


def _to_json(hole: Hole, parts: list[bytes]) -> Any:
    if isinstance(hole, int):
        return hole
    if isinstance(hole, InlineMessage):
        parts.append(hole.body)
        return [_INLINE, len(hole.body)]
    inner = [[key, _to_json(each, parts)] for key, each in hole.inner]
    runs = [list(run if run[3] else run[:3]) for run in hole.runs]
    return [hole.kind, runs, inner] if inner else [hole.kind, runs]


def _from_json(data: Any, take: Callable[[int], bytes]) -> Hole:
    if isinstance(data, int):
        return data
    kind, *rest = data
    if kind == _INLINE:
        return InlineMessage(take(rest[0]))
    runs = [(place, first, last, *(skipped or (0,))) for place, first, last, *skipped in rest[0]]
    inner = [(key, _from_json(each, take)) for key, each in (rest[1] if len(rest) > 1 else [])]
    return MessageGap(kind, runs, inner)


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sort ranges, and join ranges that touch or overlap."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


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
