"""What went into a view, as few segments as say it, and each entry's part told again from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from longthread.model.manifest import How, Segment, Why
from longthread.view.condense import TOOL_MAX
from longthread.view.items import ViewItem, ViewPart

Way = tuple[How, Why | None]
"""What a segment says of its entries: how they went in, and why some did not."""

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
"""The ways that a segment may have, the one first that says most plainly what was done."""


def segments(parts: Iterable[tuple[int, ViewPart, Why | None]], tool_max: int = TOOL_MAX) -> list[Segment]:
    """The manifest of a view's parts: each with the seq of its entry and, where it was left out, why.

    `tool_max` is what results were condensed to.
    """
    found: list[Segment] = []
    first, last, tokens, ways = 0, -1, 0, _NONE
    for seq, part, why in parts:
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
    if tool_max == TOOL_MAX:
        return found
    return [replace(each, limit=tool_max) if each.how == "condensed" else each for each in found]


def _segment(first: int, last: int, tokens: int, ways: frozenset[Way]) -> Segment:
    how, why = next(way for way in _ORDER if way in ways)
    return Segment(first, last, how, tokens, why)


def shown(segment: Segment, item: ViewItem) -> ViewPart | None:
    """How an entry of a segment went into the view; None when it was left out."""
    if segment.how == "left out" or (segment.why == "stale" and is_observed(item)):
        return None
    if segment.how == "cut":
        # What it costs now: since then it may have been edited, or the model be another one.
        return item.cut(segment.limit, bare=segment.bare)
    return item.whole if segment.how == "whole" else item.condensed(segment.limit or TOOL_MAX)


def is_observed(item: ViewItem) -> bool:
    """Whether the item is a call or a result."""
    return item.role == "tool" or bool(item.calls)


def _ways(part: ViewPart, why: Why | None, tool_max: int) -> frozenset[Way]:
    """The ways of a segment that the part fits into; none for one that stands alone."""
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
    # What was observed and is shown is not in a segment that leaves out what was observed.
    return frozenset(ways - {_STALE_WHOLE, _STALE_CONDENSED} if is_observed(part.item) else ways)


_NONE: frozenset[Way] = frozenset()
_LEFT_OUT: dict[Why | None, frozenset[Way]] = {
    "budget": frozenset({("left out", "budget")}),
    "digest": frozenset({("left out", "digest")}),
    "stale": frozenset({("left out", "stale"), _STALE_WHOLE, _STALE_CONDENSED}),
    "unpaired": frozenset({("left out", "unpaired")}),
}
