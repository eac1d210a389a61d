"""Compares a list of messages with a known one: most of it is the same, in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import is_

from langchain_core.messages import BaseMessage

from longthread.langgraph.saver.message_list import CachedMessage, MessageList

_MOST = 512


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
    def changed(self) -> dict[int, int]:
        """The places of the messages that have changed: in the list, and in the known one."""
        found, at = dict[int, int](), 0
        for each in self.stretches:
            if each.changed:
                found[at] = each.first
            at += each.count
        return found

    @property
    def behind(self) -> int:
        """The known place behind the last of the messages."""
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
        self._size = _MOST

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
        self._size = min(2 * self._size, _MOST) if count == self._size else max(1, count)
        return count
