"""Encode the parts of a view as few segments, and decode them; show an entry of a view to people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from longthread.model.run import How, Segment, Why
from longthread.view.condense import TOOL_MAX
from longthread.view.items import FORM, TOLD, ViewItem, ViewPart

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
