"""What one model call sees of a thread. Pure: the same input gives the same view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from longthread.model.entry import Role
from longthread.view.condense import TOOL_MAX, condense_result, cut_middle
from longthread.view.tokens import MESSAGE_OVERHEAD, estimate

WHOLE_SHARE = 0.65
"""The part of the budget that whole messages may fill; what is older is condensed into the rest."""

BARE_CALL = 48
"""Tokens of a call whose arguments are left out: its id, its name, and the note that they are."""

How = Literal["whole", "condensed", "cut", "left out"]


@dataclass(frozen=True)
class Item:
    """A message, as far as the composer cares. What is computed from it is computed once.

    `calls` are the ids of its tool calls, `answers` the id of the call that it is the result of, `extra` the tokens
    that it costs beyond its text: its calls.
    """

    key: str
    role: Role
    text: str
    calls: tuple[str, ...] = ()
    answers: str | None = None
    extra: int = 0

    @cached_property
    def tokens(self) -> int:
        """What it costs whole."""
        return estimate(self.text) + self.extra + MESSAGE_OVERHEAD

    @cached_property
    def whole(self) -> Part:
        """It, whole."""
        return Part(self, "whole", tokens=self.tokens)

    @cached_property
    def condensed(self) -> Part:
        """It, its result made shorter by structure; whole, where there is nothing to shorten."""
        if not self.condensable:
            return self.whole
        text = condense_result(self.text)
        return self.whole if text == self.text else _changed(self, "condensed", text)

    @property
    def condensable(self) -> bool:
        """Whether condensing may change it."""
        return self.role == "tool" and len(self.text) > TOOL_MAX


@dataclass(frozen=True, slots=True)
class Part:
    """How an item went into the view; `text` is what it became where it was condensed or cut.

    `bare` says that the arguments of its calls are left out too: each call costs `BARE_CALL` tokens. `limit` is the
    number of characters that its text was cut to, where it was.
    """

    item: Item
    how: How
    text: str | None = None
    tokens: int = 0
    bare: bool = False
    limit: int | None = None


def compose(items: Sequence[Item], budget: int) -> list[Part]:
    """Choose what is shown of `items`, oldest first, so that it costs at most `budget` tokens.

    A tool call and its results are one unit, shown together or not at all; results without a call, and calls without
    all their results, are never shown. The newest user message is always in, cut in the middle if it must be; what
    comes behind it is condensed before anything of it is left out.
    """
    units = units_of(items)
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
        parts = [item.whole for item in units[n]]
        if _cost(parts) > whole_left:
            whole_left = 0
            parts = [item.condensed for item in units[n]]
        if _cost(parts) > left and n == newest:
            parts = _fit(units[n], left)
        if _cost(parts) > left:
            break
        plans[n] = parts
        left -= _cost(parts)
        whole_left -= _cost(parts)
    return [part for n, unit in enumerate(units) for part in plans.get(n) or [Part(i, "left out") for i in unit]]


def units_of(items: Sequence[Item]) -> list[list[Item]]:
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


def _changed(item: Item, how: How, text: str) -> Part:
    return Part(item, how, text, replace(item, text=text).tokens)


def _fit(unit: Sequence[Item], budget: int) -> list[Part]:
    """Show the unit in at most `budget` tokens if that can be: condensed, then without arguments, then cut."""
    parts = [item.whole for item in unit]
    if _cost(parts) > budget:
        parts = [item.condensed for item in unit]
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
        text = cut_text(part.item.text, limit)
    if text in (part.text, part.item.text):
        return part
    return replace(part, how="cut", text=text, tokens=fixed + estimate(text), limit=max(limit, 0))


def cut_text(text: str, limit: int) -> str:
    """A text cut to about `limit` characters, as it is shown."""
    return cut_middle(text, limit) if limit > 80 else text[: max(limit, 0)]


def _cost(parts: Sequence[Part]) -> int:
    return sum(part.tokens for part in parts)
