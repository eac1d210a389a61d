"""Messages for the composer, and their parts in a view: encoded as few segments, decoded, and shown to people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from longthread.model.entry import Role
from longthread.model.run import How, Segment, Why
from longthread.view.condense import TOOL_MAX, condense_earlier, condense_result, cut_middle, cut_result, is_condensable
from longthread.view.tokens import ANY, MESSAGE_OVERHEAD, estimate

BARE_CALL = 48
"""Tokens of a call without arguments: id, name, and a note."""
BARE_ARGS: Mapping[str, Any] = {"left_out": "too long to show"}
"""Stands in place of a call's arguments."""

FORM, TOLD = 2, 2
"""How results are shown now, which a manifest names; and the first form that shows some results as text."""

_MIDDLE = 80
"""Characters below which a cut text is only its beginning."""
_CUT = 20
"""Tokens of a text cut to the minimum."""


@dataclass(frozen=True)
class ViewItem:
    """A message for the composer, with cached results.

    `calls` are the ids of its tool calls, `answers` the id of the call that it answers. `extra`, `thinking` and `other`
    are tokens of calls, thinking and attachments. A `silent` message has only thinking. `stored` is the JSON of a
    result whose `text` says it in fewer tokens. `written` is its whole text as the protocol sends it, if that is
    another one.
    """

    key: str
    role: Role
    text: str
    calls: tuple[str, ...] = ()
    answers: str | None = None
    extra: int = 0
    thinking: int = 0
    other: int = 0
    beside: int = 0
    """The number of attachments."""
    silent: bool = False
    family: str = ANY
    stored: str = ""
    written: str | None = None
    # Not copied by `replace`.
    _condensed: dict[tuple[int, int], ViewPart] = field(default_factory=dict, init=False, compare=False, repr=False)
    _cut: dict[tuple[int | None, bool, int], ViewPart] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @cached_property
    def text_tokens(self) -> int:
        """The tokens of its text."""
        return estimate(self.text if self.written is None else self.written, self.family)

    @property
    def tokens(self) -> int:
        """The tokens of the whole message."""
        return self.text_tokens + self.extra + self.thinking + self.other + MESSAGE_OVERHEAD

    @cached_property
    def whole(self) -> ViewPart:
        return ViewPart(self, "whole", tokens=self.tokens)

    @cached_property
    def as_stored(self) -> ViewItem:
        """The item as older forms show it: with a result's JSON instead of its text."""
        return replace(self, text=self.stored, stored="") if self.stored else self

    def condense(self, limit: int = TOOL_MAX, form: int = FORM) -> ViewPart:
        """Without thinking; a result has about `limit` characters. Silent messages are left out: providers refuse empty
        ones."""
        if (limit, form) not in self._condensed:
            self._condensed[limit, form] = self._made_condensed(limit, form)
        return self._condensed[limit, form]

    def cut(self, limit: int | None, *, bare: bool = False, form: int = FORM) -> ViewPart:
        """Without attachments, the text cut to about `limit` characters, and if `bare` without the calls' arguments."""
        if (limit, bare, form) not in self._cut:
            text = None if limit is None else cut_item(self, limit, form)
            tokens = self.text_tokens if text is None or text == self.text else estimate(text, self.family)
            tokens += (BARE_CALL * len(self.calls) if bare else self.extra) + MESSAGE_OVERHEAD
            self._cut.clear()  # only the newest is needed again, and texts may be long
            self._cut[limit, bare, form] = ViewPart(self, "cut", text, tokens, bare, limit)
        return self._cut[limit, bare, form]

    def is_condensable(self, limit: int = TOOL_MAX) -> bool:
        """Whether condensing changes it."""
        return self.thinking > 0 or (self.role == "tool" and is_condensable(self.text, limit))

    def _made_condensed(self, limit: int, form: int) -> ViewPart:
        if self.silent:
            return ViewPart(self, "left out")
        condense = condense_result if form else condense_earlier
        text = condense(self.text, limit) if self.role == "tool" else self.text
        if self.written is not None and self.text_tokens <= estimate(text, self.family):
            text = self.text
        if text == self.text and not self.thinking:
            return self.whole
        own_limit = None if limit == TOOL_MAX else limit
        if text == self.text:
            return ViewPart(self, "condensed", tokens=self.tokens - self.thinking, limit=own_limit)
        tokens = self.extra + MESSAGE_OVERHEAD + estimate(text, self.family)
        return ViewPart(self, "condensed", text, tokens, limit=own_limit)


@dataclass(frozen=True, slots=True)
class ViewPart:
    """How an item went into the view; `text` is its shortened text. Only whole items have thinking. `bare`: the calls
    have no arguments. `limit` is the number of characters of a cut text, or of a condensed result if not `TOOL_MAX`."""

    item: ViewItem
    how: How
    text: str | None = None
    tokens: int = 0
    bare: bool = False
    limit: int | None = None


def units_of(items: Iterable[ViewItem]) -> list[list[ViewItem]]:
    """Groups calls with their results, and drops unpaired ones. A result belongs to the nearest call before it of its
    id: ids may repeat in a thread, and even in one message."""
    units: list[list[ViewItem]] = []
    waiting: dict[str, list[list[ViewItem]]] = {}
    for item in items:
        if item.answers is None:
            units.append([item])
            if item.calls:
                waiting |= {call: [] for call in item.calls}
                for call in item.calls:
                    waiting[call].append(units[-1])
        elif waiting.get(item.answers):
            waiting[item.answers].pop().append(item)
    return [unit for unit in units if len(unit) == 1 + len(unit[0].calls)]


def cost(parts: Iterable[ViewPart]) -> int:
    """The tokens of parts."""
    return sum(part.tokens for part in parts)


def fit_unit(unit: Sequence[ViewItem], budget: int, limit: int = TOOL_MAX) -> list[ViewPart]:
    """A unit in at most `budget` tokens, if possible: whole; with cut results; or without thinking, which goes last, as
    providers require it with the results."""
    parts = [item.whole for item in unit]
    if cost(parts) <= budget:
        return parts
    thought, results = unit[0], parts[1:]
    if thought.thinking and results and thought.tokens + sum(_least(each) for each in unit[1:]) <= budget:
        return [parts[0], *_share_budget(results, budget - thought.tokens)]
    return unthinking(unit, budget, limit)


def unthinking(unit: Sequence[ViewItem], budget: int, limit: int = TOOL_MAX) -> list[ViewPart]:
    """A unit without thinking in at most `budget` tokens, if possible: with cut texts, then without arguments."""
    parts = [item.condense(limit) if item.thinking else item.whole for item in unit]
    if cost(parts) <= budget:
        return parts
    fixed = cost(parts) - sum(part.item.text_tokens for part in parts)
    if fixed + _CUT * len(parts) > budget:
        dear = (part.item.extra > BARE_CALL * len(part.item.calls) for part in parts)
        parts = [part.item.cut(None, bare=True) if costs else part for part, costs in zip(parts, dear, strict=True)]
    return _share_budget(parts, budget)


def least(unit: Sequence[ViewItem]) -> int:
    """The least tokens of a unit."""
    return sum(_least(item) for item in unit)


def _least(item: ViewItem) -> int:
    calls = min(item.extra, BARE_CALL * len(item.calls))
    return min(item.tokens, calls + _CUT + MESSAGE_OVERHEAD)


def _share_budget(parts: Sequence[ViewPart], budget: int) -> list[ViewPart]:
    """Cuts parts to equal shares of the budget; unused shares go to the others."""
    shown: dict[int, ViewPart] = {}
    fixed = [min(part.tokens, _count_fixed(part)) for part in parts]
    left, open_ = budget - sum(fixed), sorted(range(len(parts)), key=lambda n: parts[n].tokens - fixed[n])
    for place, n in enumerate(open_):
        shown[n] = _cut(parts[n], fixed[n] + left // (len(parts) - place))
        left -= shown[n].tokens - fixed[n]
    return [shown[n] for n in range(len(parts))]


def _count_fixed(part: ViewPart) -> int:
    """The tokens of a part without its text."""
    return (BARE_CALL * len(part.item.calls) if part.bare else part.item.extra) + MESSAGE_OVERHEAD


def _cut(part: ViewPart, budget: int) -> ViewPart:
    """Cuts a part's text to at most `budget` tokens, if possible."""
    if part.tokens <= budget:
        return part
    item, limit = part.item, len(part.item.text)
    cut, least = item.cut(limit, bare=part.bare), -1 if item.beside else 0
    fixed = _count_fixed(part)
    while limit > least and cut.tokens > budget:
        limit = max(0, int(limit * 0.98 * (budget - fixed) / (cut.tokens - fixed))) if limit else -1
        cut = item.cut(limit, bare=part.bare)
    return part if cut.text == item.text and not item.other else cut


def cut_item(item: ViewItem, limit: int, form: int = FORM) -> str:
    """An item's text cut to about `limit` characters, with a note on attachments; empty below 0. Of a result the rows
    stay."""
    rows = form > 0 and item.role == "tool" and limit > _MIDDLE
    text = cut_result(item.text, limit) if rows else cut_text(item.text, limit)
    if not item.beside or limit < 0:
        return text
    return f"{text}\n… ({item.beside} attachment{'s' * (item.beside > 1)} left out) …".lstrip()


def cut_text(text: str, limit: int) -> str:
    """A text cut to about `limit` characters."""
    return cut_middle(text, limit) if limit > _MIDDLE else text[: max(limit, 0)]


Way = tuple[How, Why | None]
"""The how and why of a segment."""
_WHOLE: Way = ("whole", None)
_CONDENSED: Way = ("condensed", None)
_STALE_WHOLE: Way = ("whole", "stale")
_STALE_CONDENSED: Way = ("condensed", "stale")
_ORDER: Sequence[Way] = (
    _WHOLE,
    _CONDENSED,
    ("left out", "budget"),
    ("left out", "digest"),
    ("left out", "stale"),
    ("left out", "unpaired"),
    _STALE_WHOLE,
    _STALE_CONDENSED,
)
"""The ways of a segment, the plainest first."""


def segments(parts: Iterable[tuple[int, ViewPart, Why | None]], tool_max: int = TOOL_MAX) -> list[Segment]:
    """The manifest of parts, with seqs and reasons for omission. `tool_max` is the limit of condensed results."""
    found: list[Segment] = []
    told: set[int] = set()
    first, last, tokens, ways = 0, -1, 0, _NONE
    for seq, part, why in parts:
        told |= {seq} if part.item.stored else set()
        fitting = _ways(part, why, tool_max)
        common = ways & fitting
        if common and seq == last + 1:
            last, tokens, ways = seq, tokens + part.tokens, common
            continue
        if ways:
            found.append(_segment(first, last, tokens, ways))
        first, last, tokens, ways = seq, seq, part.tokens, fitting
        if not fitting:
            found.append(Segment(seq, seq, part.how, part.tokens, why, part.limit, part.bare))
    if ways:
        found.append(_segment(first, last, tokens, ways))
    limit = None if tool_max == TOOL_MAX else tool_max
    formed = (replace(each, form=FORM) if _has_form(each, told) else each for each in found)
    return [replace(each, limit=limit) if each.how == "condensed" else each for each in formed]


def _has_form(segment: Segment, told: Iterable[int]) -> bool:
    """Return whether the form decides how a segment is shown, given the seqs of results that are shown as text."""
    if segment.how == "whole":
        return any(segment.first <= seq <= segment.last for seq in told)
    return segment.how in ("condensed", "cut")


def _segment(first: int, last: int, tokens: int, ways: frozenset[Way]) -> Segment:
    how, why = next(way for way in _ORDER if way in ways)
    return Segment(first, last, how, tokens, why)


def show_part(segment: Segment, item: ViewItem) -> ViewPart | None:
    """The part of an entry in a segment; None if it was left out."""
    if segment.how == "left out" or (segment.why == "stale" and is_observed(item)):
        return None
    item = item if segment.form >= TOLD else item.as_stored
    if segment.how == "cut":
        # Its present tokens: the entry or the model may have changed.
        return item.cut(segment.limit, bare=segment.bare, form=segment.form)
    return item.whole if segment.how == "whole" else item.condense(segment.limit or TOOL_MAX, segment.form)


def is_observed(item: ViewItem) -> bool:
    """Whether the item is a call or a result."""
    return item.role == "tool" or bool(item.calls)


def _ways(part: ViewPart, why: Why | None, tool_max: int) -> frozenset[Way]:
    """The possible ways of a part; none for a part with a segment of its own."""
    if part.how == "cut":
        return _NONE
    if part.how == "left out":
        return _LEFT_OUT[why]
    if part.how == "condensed":
        ways = {_CONDENSED, _STALE_CONDENSED}
    elif part.item.is_condensable(tool_max):
        ways = {_WHOLE, _STALE_WHOLE}
    else:
        ways = {_WHOLE, _CONDENSED, _STALE_WHOLE, _STALE_CONDENSED}
    # A shown call or result is not in a segment that leaves these out.
    return frozenset(ways - {_STALE_WHOLE, _STALE_CONDENSED} if is_observed(part.item) else ways)


_NONE: frozenset[Way] = frozenset()
_LEFT_OUT: dict[Why | None, frozenset[Way]] = {
    "budget": frozenset({("left out", "budget")}),
    "digest": frozenset({("left out", "digest")}),
    "stale": frozenset({("left out", "stale"), _STALE_WHOLE, _STALE_CONDENSED}),
    "unpaired": frozenset({("left out", "unpaired")}),
}


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """One entry of a view, or several: the entries that a text covers, or the entries before the hot window (`why` is
    `window`). `tier` is None for entries that were left out. Of entries that retention has deleted (`why` is `pruned`)
    only place and `how` are known.

    `text` is without thinking. `first`, `seq` and `count` are for several entries; recalled text has none.
    """

    seq: int
    role: str
    how: How
    why: Why | Literal["window", "pruned"] | None
    tier: int | None
    tokens: int
    text: str
    first: int | None = None
    count: int = 1

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}
