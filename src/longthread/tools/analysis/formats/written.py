"""Values as people write them: grouped, rounded to the column's places, with its unit, and without the tail of a double
(52838.549999999996)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from longthread.tools.analysis.formats.column_format import NUMERIC, ColumnFormat

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")
MOMENT = re.compile(r"(?P<day>\d{4,}-\d{2}-\d{2})[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?")
_TAIL_DIGITS = 16
"""Significant digits from which a double may have a tail."""
_TIDY_DIGITS = 12
"""Significant digits that a number without its tail has at most."""
_MEASURED_PLACES = 4
"""Places up to which a double's digits are taken for measured ones; a longer one was computed."""
_COMPUTED_PLACES = 2
_SIGNIFICANT = 3
_MOST_PLACES = 8
_LARGEST = 21
"""Digits up to which a number is written without an exponent."""
_WIDE = Context(prec=400)
_SHORT = {"en": ((3, "K"), (6, "M"), (9, "B"), (12, "T")), "zh": ((4, "万"), (8, "亿"), (12, "万亿"))}
_SHORT_FROM = 10_000


def without_tail(number: float) -> float:
    """A double as people wrote it before it was computed with: 52838.55 for 52838.549999999996; 1/3 stays, and so does
    a whole number."""
    text = repr(number)
    if number.is_integer() or len(text) < _TAIL_DIGITS or len(_significant(text)) < _TAIL_DIGITS:
        return number
    tidy = f"{number:.15g}"
    return float(tidy) if len(_significant(tidy)) <= _TIDY_DIGITS else number


def _significant(text: str) -> str:
    digits = text.partition("e")[0].replace(".", "").lstrip("-0")
    return digits.rstrip("0")


def number_in(value: Any) -> Decimal | None:
    """The number in a cell of JSON: a number, or an exact one as text. None: there is none, or one of very many
    digits."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, float):
        tidy = without_tail(value)
        number = Decimal(int(tidy)) if tidy.is_integer() else Decimal(repr(tidy))  # 13.0 has no places
        return number if number.is_finite() and abs(number.adjusted()) < _LARGEST else None
    if isinstance(value, int | Decimal):
        number = Decimal(value)
        return number if number.is_finite() and abs(number.adjusted()) < 2 * _LARGEST else None
    if isinstance(value, str) and len(value) < 2 * _LARGEST and _NUMBER.fullmatch(value):
        return Decimal(value)
    return None


def with_places(format_: ColumnFormat, values: Sequence[Any]) -> ColumnFormat:
    """The format of a column with the places that its values need, if it names none: two of money, and few of what was
    computed. An exact number keeps all of them."""
    if format_.places is not None or format_.kind not in NUMERIC:
        return format_
    power = 2 if format_.kind == "share" else 0
    numbers = [number.scaleb(power, _WIDE) for value in values if (number := number_in(value)) is not None]
    longest = max((_places(number) for number in numbers), default=0)
    largest = max((abs(number) for number in numbers), default=Decimal(0))
    is_exact = any(isinstance(value, str) for value in values)
    return replace(format_, places=_places_for(format_, longest, largest, is_exact=is_exact))


def _places_for(format_: ColumnFormat, longest: int, largest: Decimal, *, is_exact: bool) -> int:
    if format_.kind == "currency" and longest:
        return longest if largest < 10 and 2 < longest <= _MEASURED_PLACES else 2
    if format_.kind in ("percent", "share"):
        return longest if longest <= 2 else 1
    if longest <= _MEASURED_PLACES or is_exact or format_.kind == "plain":
        return longest
    if largest >= 1:
        return _COMPUTED_PLACES
    return min(_MOST_PLACES, _SIGNIFICANT - 1 - largest.adjusted())


def _places(number: Decimal) -> int:
    """The places that a number needs; zeros that an exact one ends with count."""
    return max(0, -int(number.as_tuple().exponent))


def write_value(value: Any, format_: ColumnFormat) -> str:
    """A cell of JSON as people write it. What is no number or date of the format stays; NULL is empty."""
    if value is None:
        return ""
    if format_.kind in ("date", "text") and isinstance(value, str) and (moment := MOMENT.fullmatch(value)):
        return moment["day"] if format_.kind == "date" else value.replace("T", " ")
    number = number_in(value) if format_.kind in NUMERIC else None
    if number is None:
        return str(value).lower() if isinstance(value, bool) else str(value)
    number = number.scaleb(2, _WIDE) if format_.kind == "share" else number
    rounded = _round(number, format_.places)
    digits = f"{rounded:f}" if format_.kind == "plain" else f"{rounded:,f}"
    return _add_affixes(digits, format_)


def shorten_value(value: Any, format_: ColumnFormat, language: str) -> str:
    """A cell where space is short: 1.2M, 120万. Below ten thousand, and in percent, as `write_value` does."""
    number = number_in(value)
    if number is None or format_.kind not in ("number", "currency", "unit") or abs(number) < _SHORT_FROM:
        return write_value(value, format_)
    for power, sign in reversed(_SHORT[language]):
        scaled = number.scaleb(-power, _WIDE)
        near = _round(scaled, max(0, _SIGNIFICANT - 1 - scaled.adjusted()))
        if abs(near) >= 1:
            digits = f"{near:,f}"
            digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
            return _add_affixes(f"{digits}{sign}", format_)
    return write_value(value, format_)


def _round(number: Decimal, places: int | None) -> Decimal:
    """A number with so many places, a half away from zero. What would be zero and is none keeps two digits."""
    if places is None:
        return number if number else Decimal(0)
    rounded = number.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _WIDE)
    if not rounded and number:
        return number.quantize(Decimal(1).scaleb(number.adjusted() - 1), ROUND_HALF_UP, _WIDE)
    return rounded if rounded else abs(rounded)


def _add_affixes(digits: str, format_: ColumnFormat) -> str:
    before, behind = format_.affixes
    sign, size = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    return f"{sign}{before}{size}{behind}"
