"""Years, quarters, months and days as numbers on a line, so that gaps between them show."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Any

from longthread.tools.analysis.column_format import number_in
from longthread_demo.query.plan import Condition

_PARTS = {"quarter": (re.compile(r"(\d{4})-Q([1-4])"), 4), "month": (re.compile(r"(\d{4})-(\d{2})"), 12)}


@dataclass(frozen=True)
class PeriodSeries:
    """The periods of a result: their grain, the steps and labels of the first and the last, and how many there are."""

    grain: str
    first: int
    last: int
    begin: str
    end: str
    number: int

    @property
    def is_gapless(self) -> bool:
        return self.number == self.last - self.first + 1

    def says(self, condition: Condition) -> bool:
        """Whether the first and the last period say what a condition on their dates does."""
        if condition.operator not in ("range", "ranges"):
            return False
        pairs = [condition.values] if condition.operator == "range" else condition.values
        if len(pairs) > 1 and not self.is_gapless:
            return False
        steps = [(_step_from(low, self.grain), _step_from(high, self.grain)) for low, high in pairs]
        lows, highs = ([step for step in side if step is not None] for side in zip(*steps, strict=True))
        if len(lows) + len(highs) < 2 * len(pairs):
            return False
        return (min(lows), max(highs)) == (self.first, self.last + 1)


def step_of(cell: Any, grain: str) -> int | None:
    """The step of a period in a cell (2019, `2019-Q2`, `2019-05`, `2019-05-01`); None where it is no period."""
    if grain == "year":
        number = number_in(cell)
        return int(number) if number is not None and number == int(number) else None
    if grain == "day":
        day = _date_in(str(cell)[:10])
        return day.toordinal() if day is not None else None
    pattern, size = _PARTS[grain]
    found = pattern.fullmatch(str(cell))
    return int(found[1]) * size + int(found[2]) - 1 if found else None


def _step_from(day: str | None, grain: str) -> int | None:
    """The step of the period that begins on a day; None where none does."""
    begin = _date_in(day or "")
    if begin is None or grain == "day":
        return begin.toordinal() if begin is not None else None
    size = _PARTS[grain][1] if grain in _PARTS else 1
    part, rest = divmod(begin.month - 1, 12 // size)
    return begin.year * size + part if begin.day == 1 and not rest else None


def _date_in(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
