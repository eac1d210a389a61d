"""Dates in a question: years, months, quarters and days as half-open ranges of ISO dates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from longthread.tools.analysis.schema_linking import stem
from longthread_demo.words.lexicon import Token

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH_OF = {stem(name): number for number, name in enumerate(_MONTHS, 1)} | {
    name[:3]: number for number, name in enumerate(_MONTHS, 1)
}


_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": 4}


@dataclass(frozen=True)
class Moment:
    """From `start` up to but without `end`, ISO dates. `grain` is how exact it was said."""

    start: str
    end: str
    grain: str


def year(value: int) -> Moment:
    """A calendar year."""
    return Moment(f"{value:04d}-01-01", f"{value + 1:04d}-01-01", "year")


def month(of_year: int, value: int) -> Moment:
    """A month of a year."""
    after = date(of_year + value // 12, value % 12 + 1, 1)
    return Moment(f"{of_year:04d}-{value:02d}-01", after.isoformat(), "month")


def quarter(of_year: int, value: int) -> Moment:
    """A quarter of a year."""
    return Moment(month(of_year, 3 * value - 2).start, month(of_year, 3 * value).end, "quarter")


def day(of_year: int, of_month: int, value: int) -> Moment:
    """A day. Raises ValueError when there is none."""
    start = date(of_year, of_month, value)
    return Moment(start.isoformat(), (start + timedelta(days=1)).isoformat(), "day")


_JOINTS = frozenset(["to", "through", "until", "till", "and", "-", "–", "—", "~", "～", "到", "至", "和", "与", "、"])
_LOOSE = frozenset(["and", "和", "与", "、"])


def moment_at(tokens: Sequence[Token], start: int) -> tuple[Moment, int] | None:
    """Return the moment that starts at a token, and the token after it; None when there is none.

    A range where one end borrows its year or month from the other (`May to July 2021`, `2022年1月1日到3月31日`) is one
    moment.
    """
    try:
        return _borrowing(tokens, start) or _chinese(tokens, start) or _western(tokens, start)
    except ValueError:
        return None


def _borrowing(tokens: Sequence[Token], start: int) -> tuple[Moment, int] | None:
    """A range whose ends do not both say their year: the other end's is meant."""
    whole = _chinese(tokens, start) or _western(tokens, start)
    if whole is not None:
        first, joint = whole
        second = _partial(tokens, _behind(tokens, joint), first) if _norm(tokens, joint) in _JOINTS else None
        if second is not None and not _whole(tokens, _behind(tokens, joint)):
            return _span(tokens, start, joint, first, second)
        return None
    found = _bare_month(tokens, start)
    if found is None or _norm(tokens, found[2]) not in _JOINTS:
        return None
    of_month, of_day, joint = found
    ahead = _behind(tokens, joint)
    other = _whole(tokens, ahead) or _day_then_year(tokens, ahead, of_month)
    if other is None:
        return None
    of_year = int(other[0].start[:4])
    first = day(of_year, of_month, of_day) if of_day else month(of_year, of_month)
    return _span(tokens, start, joint, first, other)


def _behind(tokens: Sequence[Token], joint: int) -> int:
    return joint + 1 + (_norm(tokens, joint + 1) in ("the", "on"))


def _whole(tokens: Sequence[Token], at: int) -> tuple[Moment, int] | None:
    return (_chinese(tokens, at) or _western(tokens, at)) if at < len(tokens) else None


def _span(
    tokens: Sequence[Token], start: int, joint: int, first: Moment, second: tuple[Moment, int]
) -> tuple[Moment, int] | None:
    """Both ends as one, unless `and` joins two that lie apart and no *between* is said."""
    other, after = second
    if other.start < first.start:
        return None
    led = _norm(tokens, start - 1) in ("between", "from", "在", "介于")
    if _norm(tokens, joint) in _LOOSE and not led and other.start != first.end:
        return None
    return Moment(first.start, other.end, "range"), after


def _bare_month(tokens: Sequence[Token], at: int) -> tuple[int, int | None, int] | None:
    """A month by name without a year, with its day if there is one: (month, day, the token after it)."""
    of_day = _number(tokens, at, 1, 31)
    if of_day:
        after = at + 1 + (_norm(tokens, at + 1) in ("th", "st", "nd", "rd"))
        after += _norm(tokens, after) == "of"
        of_month = _MONTH_OF.get(_norm(tokens, after))
        return (of_month, of_day, after + 1) if of_month else None
    of_month = _MONTH_OF.get(_norm(tokens, at))
    if of_month is None:
        return None
    after = at + 1
    of_day = _number(tokens, after, 1, 31)
    if of_day:
        after += 1 + (_norm(tokens, after + 1) in ("th", "st", "nd", "rd"))
    return of_month, of_day, after


def _day_then_year(tokens: Sequence[Token], at: int, of_month: int) -> tuple[Moment, int] | None:
    """`15, 2022` after `March 1 to`."""
    of_day = _number(tokens, at, 1, 31)
    after = at + 1 + (_norm(tokens, at + 1) in ("th", "st", "nd", "rd"))
    after += _norm(tokens, after) in (",", "of", "in")
    found = _is_year(tokens, after) if of_day and after < len(tokens) else None
    return (day(found, of_month, of_day), after + 1) if found and of_day else None


def _partial(tokens: Sequence[Token], at: int, first: Moment) -> tuple[Moment, int] | None:
    """The second end of a range that lacks its year, or its year and month."""
    of_year = int(first.start[:4])
    named = _bare_month(tokens, at)
    if named is not None:
        of_month, of_day, after = named
        return (day(of_year, of_month, of_day) if of_day else month(of_year, of_month)), after
    at += _norm(tokens, at) == "第"
    if first.grain == "quarter" and _quarter(_norm(tokens, at)) and _norm(tokens, at + 1) == "季":
        return quarter(of_year, _quarter(_norm(tokens, at))), at + 2 + (_norm(tokens, at + 2) == "度")
    value = _number(tokens, at, 1, 31)
    if value is None:
        return None
    if _norm(tokens, at + 1) == "月" and value <= 12 and first.grain in ("month", "day"):
        after = at + 2 + (_norm(tokens, at + 2) == "份")
        of_day = _number(tokens, after, 1, 31)
        if of_day and _norm(tokens, after + 1) in ("日", "号"):
            return day(of_year, value, of_day), after + 2
        after += _norm(tokens, after) in ("底", "末")
        return month(of_year, value), after
    if _norm(tokens, at + 1) in ("日", "号") and first.grain == "day":
        return day(of_year, int(first.start[5:7]), value), at + 2
    return None


def _norm(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].norm if 0 <= at < len(tokens) else ""


def _number(tokens: Sequence[Token], at: int, low: int, high: int) -> int | None:
    text = _norm(tokens, at)
    if at < len(tokens) and tokens[at].kind == "number" and text.isdigit() and low <= int(text) <= high:
        return int(text)
    return None


def _is_year(tokens: Sequence[Token], at: int) -> int | None:
    value = _number(tokens, at, 1000, 2199)
    return value if value is not None and len(tokens[at].text) == 4 else None


def _chinese(tokens: Sequence[Token], at: int) -> tuple[Moment, int] | None:
    short = _number(tokens, at, 20, 90)
    if short is not None and short % 10 == 0 and _norm(tokens, at + 1) == "年" and _norm(tokens, at + 2) == "代":
        return Moment(f"19{short}-01-01", f"{1900 + short + 10}-01-01", "decade"), at + 3
    value = _is_year(tokens, at)
    if value is None:
        return None
    at += 1
    if _norm(tokens, at) != "年":
        return None
    at += 1
    if _norm(tokens, at) == "代" and value % 10 == 0:
        return Moment(f"{value:04d}-01-01", f"{value + 10:04d}-01-01", "decade"), at + 1
    at += _norm(tokens, at) == "度"
    if _norm(tokens, at) == "的" and (_norm(tokens, at + 1) in ("第", "上", "下") or _norm(tokens, at + 2) == "月"):
        at += 1
    if _norm(tokens, at) == "第" and _quarter(_norm(tokens, at + 1)):
        return quarter(value, _quarter(_norm(tokens, at + 1))), at + 4
    if _quarter(_norm(tokens, at)) and _norm(tokens, at + 1) == "季":
        return quarter(value, _quarter(_norm(tokens, at))), at + 2 + (_norm(tokens, at + 2) == "度")
    if _norm(tokens, at) in ("上", "下") and _norm(tokens, at + 1) == "半" and _norm(tokens, at + 2) == "年":
        first = 1 if _norm(tokens, at) == "上" else 7
        return Moment(month(value, first).start, month(value, first + 5).end, "half"), at + 3
    if _norm(tokens, at) == "q" and _number(tokens, at + 1, 1, 4):
        return quarter(value, int(_norm(tokens, at + 1))), at + 2
    of_month = _number(tokens, at, 1, 12)
    if of_month is None or _norm(tokens, at + 1) != "月":
        return year(value), at
    at += 2
    at += _norm(tokens, at) == "份"
    of_day = _number(tokens, at, 1, 31)
    if of_day is not None and _norm(tokens, at + 1) in ("日", "号"):
        return day(value, of_month, of_day), at + 2
    return month(value, of_month), at


def _quarter(text: str) -> int:
    return {"一": 1, "二": 2, "三": 3, "四": 4, "1": 1, "2": 2, "3": 3, "4": 4}.get(text, 0)


def _western(tokens: Sequence[Token], at: int) -> tuple[Moment, int] | None:
    token = tokens[at]
    if token.kind == "date":
        parts = [int(part) for part in re.split(r"[-/]", token.norm)]
        return (day(*parts) if len(parts) == 3 else month(*parts)), at + 1
    if token.norm in ("q", "quarter") and _number(tokens, at + 1, 1, 4):
        after = at + 2 + (_norm(tokens, at + 2) in ("of", "in"))
        found = _is_year(tokens, after)
        return (quarter(found, int(_norm(tokens, at + 1))), after + 1) if found else None
    if token.norm in _ORDINALS and _norm(tokens, at + 1) in ("quarter", "half"):
        after = at + 2 + (_norm(tokens, at + 2) in ("of", "in"))
        found = _is_year(tokens, after)
        number = _ORDINALS[token.norm]
        if found and tokens[at + 1].norm == "quarter":
            return quarter(found, number), after + 1
        if found and number <= 2:
            return Moment(month(found, 6 * number - 5).start, month(found, 6 * number).end, "half"), after + 1
    if token.norm in _MONTH_OF:
        return _named_month(tokens, at, _MONTH_OF[token.norm])
    value = _is_year(tokens, at)
    if value is None:
        of_day = _number(tokens, at, 1, 31)
        after = at + 1 + (_norm(tokens, at + 1) in ("th", "st", "nd", "rd"))
        of_month = _MONTH_OF.get(_norm(tokens, after))
        found = _is_year(tokens, after + 1)
        return (day(found, of_month, of_day), after + 2) if of_day and of_month and found else None
    if _norm(tokens, at + 1) == "q" and _number(tokens, at + 2, 1, 4):
        return quarter(value, int(_norm(tokens, at + 2))), at + 3
    if _norm(tokens, at + 1) == "s" and value % 10 == 0:
        return Moment(f"{value:04d}-01-01", f"{value + 10:04d}-01-01", "decade"), at + 2
    if token.text == token.norm and 1500 <= value <= 2100:
        return year(value), at + 1
    return None


def _named_month(tokens: Sequence[Token], at: int, number: int) -> tuple[Moment, int] | None:
    after = at + 1
    of_day = _number(tokens, after, 1, 31)
    if of_day:
        after += 1 + (_norm(tokens, after + 1) in ("th", "st", "nd", "rd"))
    after += _norm(tokens, after) in (",", "of", "in")
    found = _is_year(tokens, after)
    if found is None:
        return None
    return (day(found, number, of_day) if of_day else month(found, number)), after + 1
