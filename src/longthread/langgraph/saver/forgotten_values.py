"""Pure: stored values without forgotten messages.

A value refers to messages of the log, holds others whole, and may hold what became one: an input such as
`("user", "Hello")`, or a task with the arguments of a call.
"""

from __future__ import annotations

import copy
import json
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, is_dataclass, replace
from operator import is_
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import TASKS
from langgraph.constants import START
from langgraph.types import Send
from pydantic import BaseModel

from longthread.errors import InvalidInput, LongthreadError
from longthread.langgraph.message_codec import draft_of, is_own, message_of, unpack
from longthread.langgraph.saver.channel_values import (
    ATTRIBUTES,
    CONTROL,
    MESSAGES,
    ChannelValue,
    ForgottenTexts,
    Hole,
    InlineMessage,
    MessageGap,
    with_attribute,
)
from longthread.langgraph.saver.delta import as_message
from longthread.langgraph.saver.message_list import VERSIONS, SeqRange, count_of
from longthread.messages.fields import is_packed
from longthread.model.entry import Entry

SUMMARY = "memory_summary"
"""The channel in which `MemoryMiddleware` stores its summary of earlier messages."""
_GONE: Any = object()
"""Stands for a value that is itself a forgotten message."""
_Drops = Callable[[Any], bool]


@dataclass(slots=True)
class ForgottenMessages:
    """What is to be forgotten: messages in all their versions, by entries and ids, and their calls. `versions` are the
    entries of the thread that are later versions of any message, in order. `lists` names channels of messages.
    `clears_summaries`: the middleware's summary of earlier messages is emptied."""

    entries: Sequence[Entry]
    ids: Set[str]
    serde: SerializerProtocol
    versions: Sequence[int] = ()
    lists: set[str] = field(default_factory=lambda: {"messages"})
    clears_summaries: bool = True
    seqs: frozenset[int] = field(init=False)
    calls: frozenset[str] = field(init=False)
    _said: frozenset[tuple[str, str]] = field(init=False)
    _texts: ForgottenTexts = field(init=False)
    _inside: MessageCutter = field(init=False)
    _marks: frozenset[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.seqs = frozenset(entry.seq for entry in self.entries)
        self.calls = frozenset(call.id for entry in self.entries for call in entry.tool_calls)
        said = ((entry.role, _content(_read_stored(entry, self.serde), entry.text)) for entry in self.entries)
        self._said = frozenset((role, content) for role, content in said if content)
        self._texts = ForgottenTexts(self.entries, self.ids)
        self._inside = MessageCutter(self._is_gone, self.ids)
        words = {*self.ids, *(entry.text for entry in self.entries)} - {""}
        self._marks = frozenset(word.encode("utf-8", "surrogatepass") for word in words)

    def note_list(self, channel: str, cell: ChannelValue) -> None:
        """Note a channel that has messages in a list: what is written to it may become messages."""
        if isinstance(cell.hole, MessageGap) and cell.hole.runs:
            self.lists.add(channel)

    def without(self, channel: str, cell: ChannelValue, *, raw: bool, waits: bool) -> ChannelValue | None:
        """Return a channel's value, or a task's write to it, without them; itself if there are none, None if it was
        nothing else.

        Args:
            raw: also without inputs that became one of them, as far as they are known by their content.
            waits: its step is not finished. What the step goes on with stays as it is.

        Raises:
            InvalidInput: the step `waits`, and goes on with one of them.
        """
        if channel == SUMMARY:
            return self._summary(cell) if self.clears_summaries else cell
        if channel in CONTROL:
            return self._control(cell, waits=waits)
        drops: _Drops | None = None
        if channel == TASKS:
            drops = self._refuses if waits else self._is_task
        elif raw and (channel in self.lists or channel == START):
            drops = self._became
        return self._value(cell, drops)

    def _value(self, cell: ChannelValue, drops: _Drops | None) -> ChannelValue | None:
        hole = cell.hole
        if isinstance(hole, MessageGap) and hole.kind == MESSAGES:
            runs = self._runs(hole)
            return cell if runs == hole.runs else replace(cell, hole=MessageGap(MESSAGES, runs))
        if drops is None and (hole is None or not self._concerns(hole)) and not self._may_name(cell):
            return cell
        stored = self.serde.loads_typed((cell.kind, cell.body))
        bare = self._inside.cut(stored)
        if bare is not stored and drops == self._refuses:
            _refuse()
        made, left = self._cut(bare, hole, drops)
        if made is _GONE:
            return None
        if made is stored and left is hole:
            return cell
        kind, body = self.serde.dumps_typed(made)
        return replace(cell, kind=kind, body=body, hole=left)

    def _may_name(self, cell: ChannelValue) -> bool:
        """Whether a message may be inside what is stored whole, such as an object of the application's."""
        if cell.kind == "msgpack" and not is_own(self.serde):
            return any(mark in cell.body for mark in self._marks)
        return cell.kind != "null"

    def _control(self, cell: ChannelValue, *, waits: bool) -> ChannelValue:
        bare = self.serde.loads_typed((cell.kind, cell.body))
        if waits:
            if self._texts.is_held(bare) or (cell.hole is not None and self._concerns(cell.hole)):
                _refuse()
            return cell
        blank = self._texts.blank(bare)
        if blank is not bare:
            kind, body = self.serde.dumps_typed(blank)
            cell = replace(cell, kind=kind, body=body)
        return self._value(cell, None) or ChannelValue("null", b"")

    def _summary(self, cell: ChannelValue) -> ChannelValue:
        told = self.serde.loads_typed((cell.kind, cell.body))
        if not isinstance(told, dict) or not (told.get("summary") or told.get("shown") or told.get("topics")):
            return cell
        blank = {**told, "summary": "", "topics": [], "shown": ""}
        blank.pop("digest", None)
        kind, body = self.serde.dumps_typed(blank)
        return replace(cell, kind=kind, body=body)

    def _concerns(self, hole: Hole) -> bool:
        if isinstance(hole, int):
            return hole in self.seqs
        if isinstance(hole, InlineMessage):
            return self._is_inline(hole)
        if any(first <= seq <= last for seq in self.seqs for _, first, last, _ in hole.runs):
            return True
        return any(self._concerns(inner) for _, inner in hole.inner)

    def _is_inline(self, hole: InlineMessage) -> bool:
        return self._is_gone(unpack(hole.body, self.serde))

    def _is_gone(self, message: BaseMessage) -> bool:
        return message.id in self.ids if message.id else self._is_said(message)

    def _is_said(self, message: BaseMessage) -> bool:
        draft = draft_of(message.model_copy(update={"id": "any"}))
        said = draft.role, _content(message, draft.text)
        return said in self._said or any(call.id in self.calls for call in draft.tool_calls)

    def _cut(self, bare: Any, hole: Hole | None, drops: _Drops | None) -> tuple[Any, Hole | None]:
        """Take messages out of a value without its messages, and out of its holes."""
        if hole is not None and not isinstance(hole, MessageGap):
            return (_GONE, None) if self._concerns(hole) else (bare, hole)
        if drops is not None and drops(bare):
            return _GONE, None
        if isinstance(bare, list):
            return self._cut_list(bare, hole, drops)
        if isinstance(bare, dict):
            return self._cut_object(bare, hole, drops)
        if isinstance(bare, Send) and drops is not None:
            return self._cut_send(bare, hole, drops)
        if hole is None:
            return bare, None
        return self._cut_inner(bare, hole)

    def _cut_send(self, bare: Send, hole: MessageGap | None, drops: _Drops) -> tuple[Any, Hole | None]:
        """Take messages, and inputs that became one, out of what a task is given."""
        if isinstance(bare.arg, str):
            return bare, hole  # not an input, unless it is the whole text: then it is gone already
        inner = hole.inner[0][1] if hole is not None else None
        made, left = self._cut(bare.arg, inner, drops)
        if made is _GONE:
            if drops == self._refuses:
                _refuse()
            return _GONE, None
        if made is bare.arg and left is inner:
            return bare, hole
        return with_attribute(bare, "arg", made), replace(hole, inner=[("arg", left)]) if hole and left else None

    def _cut_inner(self, bare: Any, hole: MessageGap) -> tuple[Any, Hole | None]:
        """Take messages out of a tuple, or out of what has them in an attribute."""
        parts = (
            dict(enumerate(bare)) if isinstance(bare, tuple) else {name: getattr(bare, name) for name, _ in hole.inner}
        )
        left: list[tuple[Any, Hole]] = []
        for key, inner in hole.inner:
            made, rest = self._cut(parts[key], inner, None)
            if made is _GONE and not isinstance(bare, tuple):
                return _GONE, None
            parts[key] = None if made is _GONE else made
            left += [(key, rest)] if rest is not None else []
        rest_of = replace(hole, inner=left) if left else None
        if isinstance(bare, tuple):
            return type(bare)(parts.values()), rest_of
        [(name, value)] = parts.items()
        return with_attribute(bare, str(name), value), rest_of

    def _cut_object(
        self, bare: dict[Any, Any], hole: MessageGap | None, drops: _Drops | None
    ) -> tuple[dict[Any, Any], Hole | None]:
        inner = dict(hole.inner) if hole is not None else {}
        found: dict[Any, Any] = {}
        left: list[tuple[Any, Hole]] = []
        for key, value in bare.items():
            within = drops if key in self.lists or isinstance(value, dict) else None
            made, rest = self._cut(value, inner.get(key), within)
            found[key] = ([] if key in self.lists else None) if made is _GONE else made
            left += [(key, rest)] if rest is not None else []
        same = all(found[key] is value for key, value in bare.items()) and left == list(inner.items())
        return (bare, hole) if same else (found, replace(hole, inner=left) if hole is not None and left else None)

    def _cut_list(
        self, bare: list[Any], hole: MessageGap | None, drops: _Drops | None
    ) -> tuple[list[Any], Hole | None]:
        inner = dict(hole.inner) if hole is not None else {}
        waiting = list(hole.runs) if hole is not None else []
        items: list[Any] = []
        holes: list[tuple[Any, Hole]] = []
        runs: list[tuple[int, int, int, int]] = []
        place = at = 0  # where an item was, and where it is now
        rest = iter(bare)
        while True:
            if waiting and waiting[0][0] == place:
                _, first, last, skipped = waiting.pop(0)
                place += count_of((first, last, skipped))
                for piece in self._pieces((first, last, skipped)):
                    runs.append((at, *piece))
                    at += count_of(piece)
                continue
            item = next(rest, _GONE)
            if item is _GONE:
                break
            made, left = self._cut(item, inner.get(place), drops)
            place += 1
            if made is not _GONE:
                items.append(made)
                holes += [(at, left)] if left is not None else []
                at += 1
        same = len(items) == len(bare) and all(map(is_, items, bare))
        if same and holes == list(inner.items()) and (hole is None or runs == hole.runs):
            return bare, hole
        return items, replace(hole, runs=runs, inner=holes) if hole is not None and (runs or holes) else None

    def _runs(self, hole: MessageGap) -> list[tuple[int, int, int, int]]:
        """Return the runs of a list of nothing but messages of the log."""
        found: list[tuple[int, int, int, int]] = []
        at = 0
        for _, *run in hole.runs:
            for piece in self._pieces((run[0], run[1], run[2])):
                found.append((at, *piece))
                at += count_of(piece)
        return found

    def _pieces(self, run: SeqRange) -> list[SeqRange]:
        """Return what is left of a range of entries."""
        first, last, skipped = run
        gone = sorted(seq for seq in self.seqs if first <= seq <= last)
        if not gone:
            return [run]
        starts, ends = [first, *(seq + 1 for seq in gone)], [*(seq - 1 for seq in gone), last]
        found: list[SeqRange] = []
        for start, end in zip(starts, ends, strict=True):
            if skipped > 0:  # later versions in it are not meant
                start, end = self._place(start, 1, end), self._place(end, -1, start)
            if start <= end:
                within = bisect_right(self.versions, end) - bisect_left(self.versions, start) if skipped > 0 else 0
                found.append((start, end, VERSIONS if skipped == VERSIONS else within))
        return found

    def _place(self, seq: int, step: int, end: int) -> int:
        """Return the next entry from `seq` on that is no later version."""
        while (end - seq) * step >= 0:
            at = bisect_left(self.versions, seq)
            if at == len(self.versions) or self.versions[at] != seq:
                break
            seq += step
        return seq

    def _became(self, value: Any) -> bool:
        """Whether an input, such as a role with a text, became one of the messages."""
        message = as_message(value)
        return message is not None and self._is_gone(message)

    def _is_task(self, value: Any) -> bool:
        """Whether a task, or an item of what it is given, is one of the calls, or an input that became a message."""
        if isinstance(value, Send):
            told = isinstance(value.arg, str) and self._texts.is_held(value.arg)
            return told or _has_call(value.arg, self.calls)
        return self._became(value)

    def _refuses(self, value: Any) -> bool:
        if self._is_task(value):
            _refuse()
        return False


@dataclass(frozen=True, slots=True)
class MessageCutter:
    """Takes messages out of what is stored whole with them: objects of the application's, named tuples, objects with
    keys that are no text. Lists lose them, and None takes their place elsewhere. What holds none is returned itself."""

    is_gone: Callable[[BaseMessage], bool]
    ids: Set[str]

    def cut(self, value: Any) -> Any:
        made = self._cut_value(value, dumped=False)
        return None if made is _GONE else made

    def _cut_value(self, value: Any, *, dumped: bool) -> Any:
        """`dumped`: it is in a model of Pydantic's, whose messages may come back as objects of their fields."""
        if isinstance(value, BaseMessage):
            return _GONE if self.is_gone(value) else value
        if isinstance(value, dict):
            if dumped and "content" in value and value.get("id") in self.ids:
                return _GONE
            return self._replace_parts(value, value, dumped, lambda changes: {**value, **changes})
        if isinstance(value, list | deque):
            return self._list(value, dumped)
        if isinstance(value, tuple):
            return self._tuple(value, dumped)
        if isinstance(value, BaseModel):
            return self._replace_parts(value, value.__dict__, True, lambda changes: value.model_copy(update=changes))
        if type(value) in ATTRIBUTES or (is_dataclass(value) and not isinstance(value, type)):
            parts = {name: getattr(value, name) for name in _names(value) if hasattr(value, name)}
            return self._replace_parts(value, parts, dumped, lambda changes: _with_attributes(value, changes))
        return value

    def _replace_parts(
        self, value: Any, parts: Mapping[Any, Any], dumped: bool, make: Callable[[dict[Any, Any]], Any]
    ) -> Any:
        changes = {}
        for name, part in parts.items():
            made = self._cut_value(part, dumped=dumped)
            if made is not part:
                changes[name] = None if made is _GONE else made
        return make(changes) if changes else value

    def _list(self, value: list[Any] | deque[Any], dumped: bool) -> Any:
        items = [self._cut_value(item, dumped=dumped) for item in value]
        if all(map(is_, items, value)):
            return value
        left = [item for item in items if item is not _GONE]
        return deque(left, value.maxlen) if isinstance(value, deque) else left

    def _tuple(self, value: tuple[Any, ...], dumped: bool) -> Any:
        items = [self._cut_value(item, dumped=dumped) for item in value]
        if all(map(is_, items, value)):
            return value
        left = (None if item is _GONE else item for item in items)
        return value._make(left) if hasattr(value, "_make") else tuple(left)


def _names(value: Any) -> list[str]:
    return [ATTRIBUTES[type(value)]] if type(value) in ATTRIBUTES else [each.name for each in fields(value)]


def _with_attributes(value: Any, changes: Mapping[str, Any]) -> Any:
    if type(value) in ATTRIBUTES:
        [(name, inner)] = changes.items()
        return with_attribute(value, name, inner)
    made = copy.copy(value)
    for name, inner in changes.items():
        object.__setattr__(made, name, inner)  # it may be frozen
    return made


def _refuse() -> None:
    raise InvalidInput(
        reason="A step of this thread is not finished, and goes on with the message: as a question to a person, an "
        "answer, a result or a task. Let the run finish, or send it something new, and then forget the message; or "
        "delete the thread: saver.delete_thread(…)."
    )


def _read_stored(entry: Entry, serde: SerializerProtocol) -> BaseMessage | None:
    """Return an entry's message; None if it cannot be read: it is forgotten all the same."""
    try:
        return unpack(entry.payload, serde) if entry.payload and is_packed(entry.payload) else message_of(entry)
    except (LongthreadError, ValueError):
        return None


def _content(message: BaseMessage | None, text: str) -> str:
    """Return what a message says: its text, or its whole content where that has an image or a file."""
    blocks = message.content if message is not None and isinstance(message.content, list) else []
    if all(isinstance(each, str) or each.get("type") == "text" for each in blocks):
        return text if text.strip() else ""
    return json.dumps(blocks, sort_keys=True, default=repr)


def _has_call(value: Any, ids: Set[str]) -> bool:
    if isinstance(value, Mapping):
        return (value.get("id") in ids and "args" in value) or any(_has_call(each, ids) for each in value.values())
    return isinstance(value, list | tuple) and any(_has_call(each, ids) for each in value)
