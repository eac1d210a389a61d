"""Pure: stored values without forgotten messages.

A value refers to messages of the log, holds others whole, and may hold what became one: an input such as
`("user", "Hello")`, or a task with the arguments of a call.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.types import Interrupt, Send

from longthread.langgraph.message_codec import draft_of, unpack
from longthread.langgraph.saver.channel_values import (
    MESSAGES,
    ChannelValue,
    Hole,
    InlineMessage,
    MessageGap,
    with_attribute,
)
from longthread.langgraph.saver.delta_messages import as_message
from longthread.langgraph.saver.message_list import VERSIONS, SeqRange, count_of
from longthread.model.entry import Entry

SUMMARY = "memory_summary"
"""The channel in which `MemoryMiddleware` stores what it told of earlier messages."""
START, TASKS = "__start__", "__pregel_tasks"
_OWN = "__"
"""LangGraph's own channels begin with it: besides these two, they are interrupts, resumes, errors and results."""
_LEAST = 8
"""Characters that a text must have to be looked for within others."""


_GONE: Any = object()
"""Stands for a value that is itself a forgotten message."""
_Drops = Callable[[Any], bool]


@dataclass(slots=True)
class ForgottenMessages:
    """What is to be forgotten: messages in all their versions, by entries and ids, and their calls. `versions` are the
    entries of the thread that are later versions of any message, in order. `lists` names channels of messages."""

    entries: Sequence[Entry]
    ids: Set[str]
    versions: Sequence[int] = ()
    lists: set[str] = field(default_factory=lambda: {"messages"})
    seqs: frozenset[int] = field(init=False)
    calls: frozenset[str] = field(init=False)
    _said: frozenset[tuple[str, str]] = field(init=False)
    _words: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.seqs = frozenset(entry.seq for entry in self.entries)
        self.calls = frozenset(call.id for entry in self.entries for call in entry.tool_calls)
        self._said = frozenset((entry.role, entry.text) for entry in self.entries if entry.text.strip())
        args = [text for entry in self.entries for call in entry.tool_calls for text in _texts(call.args)]
        self._words = frozenset(text for text in [*args, *(entry.text for entry in self.entries)] if text.strip())

    def without(self, channel: str, cell: ChannelValue, serde: SerializerProtocol, *, raw: bool) -> ChannelValue | None:
        """Return a channel's value, or a task's write to it, without them; itself if there are none, None if it was
        nothing else. `raw`: also without inputs that became one of them, as far as they are known by their content."""
        if cell.hole is not None and _is_list_of_messages(cell.hole):
            self.lists.add(channel)
        if channel == SUMMARY:
            return self._summary(cell, serde)
        hole = cell.hole
        if isinstance(hole, MessageGap) and hole.kind == MESSAGES:
            runs = self._runs(hole)
            return cell if runs == hole.runs else replace(cell, hole=MessageGap(MESSAGES, runs))
        drops = self._drops(channel, raw=raw)
        if drops is None and (hole is None or not self._concerns(hole, serde)):
            return cell
        bare = serde.loads_typed((cell.kind, cell.body))
        made, left = self._cut(bare, hole, serde, drops)
        if made is _GONE:
            return None
        if made is bare and left is hole:
            return cell
        kind, body = serde.dumps_typed(made)
        return replace(cell, kind=kind, body=body, hole=left)

    def _drops(self, channel: str, *, raw: bool) -> _Drops | None:
        """Return what tells the items of a channel's value that are to go besides its messages."""
        if channel in self.lists or channel == START:
            return self._became if raw else None
        if channel == TASKS:
            return lambda value: _has_call(value, self.calls)
        return self._tells if channel.startswith(_OWN) else None

    def _summary(self, cell: ChannelValue, serde: SerializerProtocol) -> ChannelValue:
        told = serde.loads_typed((cell.kind, cell.body))
        if not isinstance(told, dict) or not (told.get("summary") or told.get("shown") or told.get("topics")):
            return cell
        blank = {**told, "summary": "", "topics": [], "shown": ""}
        blank.pop("digest", None)
        kind, body = serde.dumps_typed(blank)
        return replace(cell, kind=kind, body=body)

    def _concerns(self, hole: Hole, serde: SerializerProtocol) -> bool:
        if isinstance(hole, int):
            return hole in self.seqs
        if isinstance(hole, InlineMessage):
            return self._is_inline(hole, serde)
        if any(first <= seq <= last for seq in self.seqs for _, first, last, _ in hole.runs):
            return True
        return any(self._concerns(inner, serde) for _, inner in hole.inner)

    def _is_inline(self, hole: InlineMessage, serde: SerializerProtocol) -> bool:
        message = unpack(hole.body, serde)
        return message.id in self.ids if message.id else self._is_said(message)

    def _is_said(self, message: BaseMessage) -> bool:
        draft = draft_of(message.model_copy(update={"id": "any"}))
        return (draft.role, draft.text) in self._said or any(call.id in self.calls for call in draft.tool_calls)

    def _cut(
        self, bare: Any, hole: Hole | None, serde: SerializerProtocol, drops: _Drops | None
    ) -> tuple[Any, Hole | None]:
        """Take messages out of a value without its messages, and out of its holes."""
        if hole is not None and not isinstance(hole, MessageGap):
            return (_GONE, None) if self._concerns(hole, serde) else (bare, hole)
        if drops is not None and drops(bare):
            return _GONE, None
        if isinstance(bare, list):
            return self._cut_list(bare, hole, serde, drops)
        if isinstance(bare, dict):
            return self._cut_object(bare, hole, serde, drops)
        if hole is None:
            return bare, None
        return self._cut_inner(bare, hole, serde)

    def _cut_inner(self, bare: Any, hole: MessageGap, serde: SerializerProtocol) -> tuple[Any, Hole | None]:
        """Take messages out of a tuple, or out of what has them in an attribute."""
        parts = (
            dict(enumerate(bare)) if isinstance(bare, tuple) else {name: getattr(bare, name) for name, _ in hole.inner}
        )
        left: list[tuple[Any, Hole]] = []
        for key, inner in hole.inner:
            made, rest = self._cut(parts[key], inner, serde, None)
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
        self, bare: dict[Any, Any], hole: MessageGap | None, serde: SerializerProtocol, drops: _Drops | None
    ) -> tuple[dict[Any, Any], Hole | None]:
        inner = dict(hole.inner) if hole is not None else {}
        found: dict[Any, Any] = {}
        left: list[tuple[Any, Hole]] = []
        for key, value in bare.items():
            within = drops if key in self.lists else None
            made, rest = self._cut(value, inner.get(key), serde, within)
            found[key] = ([] if key in self.lists else None) if made is _GONE else made
            left += [(key, rest)] if rest is not None else []
        same = all(found[key] is value for key, value in bare.items()) and left == list(inner.items())
        return (bare, hole) if same else (found, replace(hole, inner=left) if hole is not None and left else None)

    def _cut_list(
        self, bare: list[Any], hole: MessageGap | None, serde: SerializerProtocol, drops: _Drops | None
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
            made, left = self._cut(item, inner.get(place), serde, drops)
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
        return message is not None and (message.id in self.ids if message.id else self._is_said(message))

    def _tells(self, value: Any) -> bool:
        """Whether an interrupt or an error tells of one of the messages."""
        if isinstance(value, list):
            return False  # its items are asked
        texts = list(_texts(value))
        found = (word == text or (len(word) >= _LEAST and word in text) for word in self._words for text in texts)
        return _has_call(value, self.calls) or any(found)


def _is_list_of_messages(hole: Hole) -> bool:
    return isinstance(hole, MessageGap) and bool(hole.runs)


def _has_call(value: Any, ids: Set[str]) -> bool:
    if isinstance(value, Send | Interrupt):
        return _has_call(value.arg if isinstance(value, Send) else value.value, ids)
    if isinstance(value, Mapping):
        return (value.get("id") in ids and "args" in value) or any(_has_call(each, ids) for each in value.values())
    return isinstance(value, list | tuple) and any(_has_call(each, ids) for each in value)


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Send | Interrupt):
        yield from _texts(value.arg if isinstance(value, Send) else value.value)
    elif isinstance(value, BaseException):
        yield str(value)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
