"""What one model call sees of a thread. Pure: the same input gives the same view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from longthread.model.entry import Role
from longthread.view.condense import condense_result, cut_middle
from longthread.view.tokens import MESSAGE_OVERHEAD, estimate

WHOLE_SHARE = 0.65
"""The part of the budget that whole messages may fill; what is older is condensed into the rest."""

How = Literal["whole", "condensed", "cut", "left out"]


@dataclass(frozen=True, slots=True)
class Item:
    """A message, as far as the composer cares.

    `calls` are the ids of its tool calls, `answers` the id of the call that it is the result of, `extra` the tokens
    that it costs beyond its text.
    """

    key: str
    role: Role
    text: str
    calls: tuple[str, ...] = ()
    answers: str | None = None
    extra: int = 0

    @property
    def tokens(self) -> int:
        return estimate(self.text) + self.extra + MESSAGE_OVERHEAD


@dataclass(frozen=True, slots=True)
class Part:
    """How an item went into the view; `text` is what it became where it was condensed or cut."""

    item: Item
    how: How
    text: str | None = None
    tokens: int = 0

    def to_json(self) -> dict[str, Any]:
        """The part as a line of the manifest."""
        return {"entry": self.item.key, "how": self.how, "tokens": self.tokens}


def compose(items: Sequence[Item], budget: int) -> list[Part]:
    """Choose what is shown of `items`, oldest first, so that it costs at most `budget` tokens.

    A tool call and its results are one unit, shown together or not at all; results without a call, and calls without
    all their results, are never shown. The newest user message is always in, cut in the middle if it must be; what
    comes behind it is condensed before anything of it is left out.
    """
    units = _units(items)
    pinned = max((n for n, unit in enumerate(units) if unit[0].role == "user"), default=len(units) - 1)
    plans: dict[int, list[Part]] = {}
    left = budget
    if units:
        plans[pinned] = _fit(units[pinned], left // 2 if pinned < len(units) - 1 else left)
        left -= _cost(plans[pinned])
    whole_left = left - int(budget * (1 - WHOLE_SHARE)) if len(units) > 1 else left
    for n in sorted(set(range(len(units))) - {pinned}, reverse=True):
        parts = [_whole(item) for item in units[n]]
        if _cost(parts) > whole_left:
            whole_left = 0
            parts = [_condensed(item) for item in units[n]]
        if _cost(parts) > left:
            if n < len(units) - 1 or pinned == n:
                break
            parts = _fit(units[n], left)
        plans[n] = parts
        left -= _cost(parts)
        whole_left -= _cost(parts)
    return [part for n, unit in enumerate(units) for part in plans.get(n) or [Part(i, "left out") for i in unit]]


def _units(items: Sequence[Item]) -> list[list[Item]]:
    """Group each call with its results, and drop what has lost its other half."""
    results = {item.answers: item for item in items if item.answers}
    units: list[list[Item]] = []
    for item in items:
        if item.answers:
            continue
        unit = [item, *(results[call] for call in item.calls if call in results)]
        if len(unit) == 1 + len(item.calls):
            units.append(unit)
    return units


def _whole(item: Item) -> Part:
    return Part(item, "whole", tokens=item.tokens)


def _condensed(item: Item) -> Part:
    if item.role != "tool":
        return _whole(item)
    text = condense_result(item.text)
    return _whole(item) if text == item.text else _changed(item, "condensed", text)


def _changed(item: Item, how: How, text: str) -> Part:
    return Part(item, how, text, replace(item, text=text).tokens)


def _fit(unit: Sequence[Item], budget: int) -> list[Part]:
    """Show the unit in at most `budget` tokens, cutting its texts in the middle where nothing else helps."""
    for shorten in (_whole, _condensed):
        parts = [shorten(item) for item in unit]
        if _cost(parts) <= budget:
            return parts
    share = budget // len(unit)
    return [_cut(part, share) for part in parts]


def _cut(part: Part, budget: int) -> Part:
    item = part.item if part.text is None else replace(part.item, text=part.text)
    limit = len(item.text)
    while item.tokens > budget and limit > 80:
        limit = min(limit // 2, limit * budget // item.tokens)
        item = replace(item, text=cut_middle(part.item.text, limit))
    return part if item.text == part.item.text else _changed(part.item, "cut", item.text)


def _cost(parts: Sequence[Part]) -> int:
    return sum(part.tokens for part in parts)
