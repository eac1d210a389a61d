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

BARE_CALL = 48
"""Tokens of a call whose arguments are left out: its id, its name, and the note that they are."""

How = Literal["whole", "condensed", "cut", "left out"]


@dataclass(frozen=True, slots=True)
class Item:
    """A message, as far as the composer cares.

    `calls` are the ids of its tool calls, `answers` the id of the call that it is the result of, `extra` the tokens
    that it costs beyond its text: its calls.
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
    """How an item went into the view; `text` is what it became where it was condensed or cut.

    `bare` says that the arguments of its calls are left out too: each call costs `BARE_CALL` tokens.
    """

    item: Item
    how: How
    text: str | None = None
    tokens: int = 0
    bare: bool = False

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
    if not units:
        return []
    newest = len(units) - 1
    pinned = max((n for n, unit in enumerate(units) if unit[0].role == "user"), default=newest)
    plans = {pinned: _fit(units[pinned], budget if pinned == newest else budget // 2)}
    left = budget - _cost(plans[pinned])
    whole_left = left if newest == 0 else left - int(budget * (1 - WHOLE_SHARE))
    for n in range(newest, -1, -1):
        if n == pinned:
            continue
        parts = [_whole(item) for item in units[n]]
        if _cost(parts) > whole_left:
            whole_left = 0
            parts = [_condensed(item) for item in units[n]]
        if _cost(parts) > left and n == newest:
            parts = _fit(units[n], left)
        if _cost(parts) > left:
            break
        plans[n] = parts
        left -= _cost(parts)
        whole_left -= _cost(parts)
    return [part for n, unit in enumerate(units) for part in plans.get(n) or [Part(i, "left out") for i in unit]]


def _units(items: Sequence[Item]) -> list[list[Item]]:
    """Group each call with its results, and drop what has lost its other half.

    A result belongs to the nearest call before it that has its id: ids may come again in a long conversation.
    """
    units: list[list[Item]] = []
    waiting: dict[str, list[Item]] = {}
    for item in items:
        if item.answers is None:
            units.append([item])
            waiting |= dict.fromkeys(item.calls, units[-1])
        elif item.answers in waiting:
            waiting.pop(item.answers).append(item)
    return [unit for unit in units if len(unit) == 1 + len(unit[0].calls)]


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
    """Show the unit in at most `budget` tokens if that can be: condensed, then without arguments, then cut."""
    for shorten in (_whole, _condensed):
        parts = [shorten(item) for item in unit]
        if _cost(parts) <= budget:
            return parts
    parts = [_bare(part) for part in parts]
    calls = sum(len(item.calls) for item in unit) * BARE_CALL
    share = (budget - calls) // len(unit)
    return [_cut(part, share + len(part.item.calls) * BARE_CALL) for part in parts]


def _bare(part: Part) -> Part:
    """The part without the arguments of its calls, where that makes it cheaper."""
    cost = BARE_CALL * len(part.item.calls)
    if part.item.extra <= cost:
        return part
    return replace(part, how="cut", bare=True, tokens=part.tokens - part.item.extra + cost)


def _cut(part: Part, budget: int) -> Part:
    text = part.item.text if part.text is None else part.text
    fixed = part.tokens - estimate(text)
    limit = len(text)
    while fixed + estimate(text) > budget and limit > 0:
        limit = min(limit // 2, limit * budget // (fixed + estimate(text)))
        text = cut_middle(part.item.text, limit) if limit > 80 else part.item.text[: max(limit, 0)]
    if text in (part.text, part.item.text):
        return part
    return replace(part, how="cut", text=text, tokens=fixed + estimate(text))


def _cost(parts: Sequence[Part]) -> int:
    return sum(part.tokens for part in parts)
