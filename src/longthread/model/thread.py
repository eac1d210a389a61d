"""A thread: a conversation, its title, feedback on its answers, and the order of its entries, which form a tree.

The source documents call it conversation, session or SCID. Entries are numbered by arrival.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Literal, Self, get_args

from longthread.model.thinking import without_thinking

TITLE_LENGTH = 50
"""Characters of the first question that make a title (document 000)."""
Archived = Literal["exclude", "include", "only"]
"""Whether a list has archived threads."""
ARCHIVED: tuple[Archived, ...] = get_args(Archived)
RESERVED = "longthread."
"""How keys of metadata begin that are Longthread's own. People neither see nor set them as metadata."""
PINNED, TITLED = f"{RESERVED}pinned_at", f"{RESERVED}titled"
SessionStatus = Literal["active", "paused", "completed", "failed"]
"""Document 002's status of a thread."""
SHORT_QUESTION = 24
"""A question of so many columns is its own title. A Chinese character takes two."""
_TITLE_COLUMNS = 60
"""Columns of a title."""
_RAMBLES = 3 * _TITLE_COLUMNS
"""A line of so many columns is no title that was cut too late: it is an answer."""
_LABEL = re.compile(r"^(?:#+\s*|[-*]\s+|\d+\.\s+)?(?:\*\*)?(?:title|标题|主题)\s*(?:\*\*)?\s*[:：]\s*(?:\*\*)?", re.I)
_CODE = re.compile(r"^(?:```|[{\[<]|(?:select|with|insert|update|delete|create|drop)\b)", re.I)
_AROUND = "\"'`*_#“”‘’「」『』《》 \t"
_END = ".。!！?？:：,，;；…"
_ASKING = re.compile(
    r"^(?:please|can you|could you|would you|show(?: me)?|tell me|give me|list(?: me)?|find(?: me)?|i want to know|"
    r"i would like to (?:know|see)|what(?:'s| is| are| was| were)|the|"
    # Before a verb these belong to a sentence: «how many were lost».
    r"(?:how many|how much|which)(?!.*\s(?:is|are|was|were|do|does|did|has|have|had|can|will)\b))\s+",
    re.I,
)
_THERE = re.compile(
    r"\s+(?:(?:are|were|is|was) there|have there been|(?:do|did|have|had) (?:we|i|you)(?: have| had| got)?)\b", re.I
)
_ASKING_ZH = re.compile(
    r"^(?:请问|请|麻烦|你?能不能|能否|可以|帮我|帮忙|给我|我想(?:知道|了解|看看?)|告诉我|列出|列一下|查一下|查询|查看|看一下|看看|"
    r"统计一下|算一下|分析一下|展示|显示)[，, ]*"
)
_ASKED_ZH = re.compile(r"(?:分别)?(?:是多少|有多少|是什么|有哪些|是哪些|怎么样|如何|多少|吗|呢)$")
Opinion = Literal["up", "down"]
"""Thumbs."""
FEEDBACK = f"{RESERVED}feedback"
"""The key of a message's metadata that holds it."""
FEEDBACK_LENGTH = 2_000
"""Characters of the sentence."""


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread's metadata. `tip` is the seq of the active branch's last entry, or 0; `first_seq` the first that
    retention has left. `agent_id` is None for the analyst. `parent_id` is the thread that delegated this one. `tags`
    and `metadata` are people's; retention deletes the thread after `expires_at`; lists leave
    it out since `archived_at`, and show it first since `pinned_at`. `titled` is the title that Longthread gave it last,
    after the first question: a title that is another one is a person's, or the question's first words."""

    id: str
    user_id: str
    title: str | None
    source: str | None
    created_at: datetime
    updated_at: datetime
    tip: int = 0
    entry_count: int = 0
    first_seq: int = 1
    tool_categories: Sequence[str] = ()
    tags: Sequence[str] = field(default_factory=tuple)
    agent_id: str | None = None
    parent_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    expires_at: datetime | None = None
    archived_at: datetime | None = None
    pinned_at: datetime | None = None
    titled: str | None = None


def title_of(question: str) -> str:
    """The first words of a question as a thread's title."""
    line = " ".join(question.split())
    return line[:TITLE_LENGTH]


def read_title(reply: str) -> str | None:
    """Return the title that a model's reply proposes; None if it is none: empty, code, or an answer."""
    lines = (line.strip() for line in without_thinking(reply).strip().splitlines())
    line = next((line for line in lines if line), "")
    if _CODE.match(line):
        return None
    line = _LABEL.sub("", line).strip(_AROUND).rstrip(_END).strip(_AROUND)
    if not line or columns(line) > _RAMBLES or not any(each.isalnum() for each in line):
        return None
    return _cut_title(line)


def title_without_model(question: str) -> str:
    """Return a question without the words that only ask, as a title."""
    line = " ".join(question.split()).rstrip(f"{_END} ")
    text = _THERE.sub("", line, count=1)
    for pattern in (_ASKING, _ASKING_ZH):
        while (shorter := pattern.sub("", text)) != text and shorter:
            text = shorter
    text = _ASKED_ZH.sub("", text).rstrip("的 ") or text
    if columns(text) < 4:
        text = line
    return _cut_title(text[:1].upper() + text[1:])


def columns(text: str) -> int:
    """Count the columns of a text in a list: a character of East Asia takes two."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def _cut_title(text: str) -> str:
    """Return a text of at most `_MOST` columns, with … where some is missing; words stay whole."""
    if columns(text) <= _TITLE_COLUMNS:
        return text
    taken = ""
    for each in text:
        if columns(taken) + columns(each) >= _TITLE_COLUMNS:
            break
        taken += each
    whole, space, _ = taken.rpartition(" ")
    return f"{(whole if space and columns(whole) > _TITLE_COLUMNS // 2 else taken).rstrip(f'{_END} ')}…"


@dataclass(frozen=True, slots=True)
class Feedback:
    """An opinion of an answer, since `at`. `text` says why, or is empty."""

    opinion: Opinion
    at: datetime
    text: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"opinion": self.opinion, "text": self.text, "at": self.at.isoformat(timespec="microseconds")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Raises ValueError, TypeError or KeyError for what `to_json` did not write."""
        if data["opinion"] not in get_args(Opinion):
            raise ValueError(f"{data['opinion']!r} is no opinion")
        return cls(data["opinion"], datetime.fromisoformat(data["at"]), str(data["text"])[:FEEDBACK_LENGTH])


@dataclass(frozen=True, slots=True)
class Scope:
    """What is searched: one thread, or all threads of a user, or those with one agent."""

    user_id: str
    thread_id: str | None = None
    agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches of a thread with this `tip` and `last` entry. `apart` maps entries whose parent is not
    the number before theirs to their parent, `versions` later versions of messages to the entries whose places they
    take."""

    tip: int
    last: int
    apart: Mapping[int, int]
    versions: Mapping[int, int] = field(default_factory=dict)
    _active: list[tuple[int, int]] = field(init=False)
    _behind: dict[int, list[int]] = field(init=False)
    _newest: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        behind: dict[int, list[int]] = {}
        for seq, parent in self.apart.items():
            behind.setdefault(parent, []).append(seq)
        object.__setattr__(self, "_active", active_ranges(self.tip, self.apart))
        object.__setattr__(self, "_behind", behind)
        newest = {place: seq for seq, place in sorted(self.versions.items()) if self.is_active(seq)}
        object.__setattr__(self, "_newest", newest)

    def is_active(self, seq: int) -> bool:
        return is_active(seq, self._active)

    def shown_at(self, seq: int) -> int:
        """Return the version that the active branch shows in the place of an entry: mostly itself."""
        return self._newest.get(seq, seq)

    def around(self, seq: int, count: int, shown: Collection[int] = ()) -> list[int]:
        """Return the `count` unshown entries on either side of one, in order; shown ones are skipped.
        At a fork the active branch counts, else the oldest. Entries that retention has deleted are included.
        Later versions have no place of their own: around one is what is around the first."""
        seq = self.versions.get(seq, seq)
        hidden = {self.versions.get(each, each) for each in shown} if self.versions else shown
        before = islice((each for each in self._earlier(seq) if self._is_place(each) and each not in hidden), count)
        behind = islice((each for each in self._later(seq) if self._is_place(each) and each not in hidden), count)
        return [*reversed(list(before)), *behind]

    def _is_place(self, seq: int) -> bool:
        return seq not in self.versions

    def _earlier(self, seq: int) -> Iterator[int]:
        while (seq := self.apart.get(seq, seq - 1)) > 0:
            yield seq

    def _later(self, seq: int) -> Iterator[int]:
        while (following := self._following(seq)) is not None:
            yield (seq := following)

    def _following(self, seq: int) -> int | None:
        next_one = seq + 1 if seq < self.last and seq + 1 not in self.apart else None
        if seq not in self._behind:
            return next_one
        found = sorted(self._behind[seq])
        if next_one is not None:
            found.insert(0, next_one)
        return next((each for each in found if self.is_active(each)), found[0])


def active_ranges(tip: int, apart: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return the branch that ends in `tip` as ranges (first, last), the last range first."""
    starts = sorted(apart)
    ranges: list[tuple[int, int]] = []
    while tip > 0:
        first = max(_at_or_before(starts, tip), 1)
        ranges.append((first, tip))
        tip = apart.get(first, 0)
    return ranges


def _at_or_before(starts: Sequence[int], seq: int) -> int:
    at = bisect_right(starts, seq)
    return starts[at - 1] if at else 1


def is_active(seq: int, ranges: Iterable[tuple[int, int]]) -> bool:
    """Return whether an entry is in these ranges."""
    return any(first <= seq <= last for first, last in ranges)


def leads_to(mark: int, tip: int, apart: Mapping[int, int], first_seq: int = 1) -> bool:
    """Return whether the branch that ends in `tip` contains entry `mark`. `apart` maps entries after the mark that do
    not follow the one written before them to their parents."""
    starts = sorted(apart)
    while tip > mark:
        at = bisect_right(starts, tip)
        if at == 0 or tip < first_seq:
            return True
        tip = apart[starts[at - 1]]
    return tip == mark
