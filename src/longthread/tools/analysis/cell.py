"""Database values as JSON, or as values for a file. An engine gives text where Python's types would lose digits."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

LARGEST = 2**53 - 1
"""The largest whole number that every JSON reader holds exactly."""
_DIGITS = 6
"""Digits after the decimal point that are never lost."""
_MOST_DIGITS = 200_000
"""Digits up to which a number is written out: PostgreSQL has up to 147,455, a document may have `1e999999999`."""
_LEAST = Decimal("1e-300")
"""Above it a double has fifteen digits."""
_WHOLE_BYTES = 64
"""Bytes up to which a binary value is shown."""
_MOMENT = re.compile(r"(\d{4,}-\d\d-\d\d) (?=\d\d:\d\d)")
_HOURS = re.compile(r"(:\d\d(?:\.\d+)?[+-]\d\d)(?=$| BC$| \(BC\)$)")

Binary = Callable[[bytes], str]
"""Writes a binary value as its database does."""


def hexadecimal(value: bytes) -> str:
    r"""As PostgreSQL writes it: `\x00ff`."""
    return f"\\x{value.hex()}"


def json_cell(value: Any, limit: int, binary: Binary = hexadecimal) -> tuple[Any, bool]:
    """`value` as JSON, with text cut to `limit` characters, and whether something was cut."""
    cell, was_cut = render_cell(value, limit, binary)
    return as_numbers([cell])[0], was_cut


def render_cell(value: Any, limit: int, binary: Binary = hexadecimal) -> tuple[Any, bool]:
    """Like `json_cell`, but exact numbers stay: `as_numbers` decides by the whole column."""
    if isinstance(value, bytes | bytearray | memoryview) and len(value) > _WHOLE_BYTES:
        return f"<{len(value)} bytes>", False
    safe = plain(value, binary, limit)
    if isinstance(safe, str) and len(safe) > limit:
        return cut(safe, limit), True
    if isinstance(safe, Decimal) and safe.is_finite() and abs(safe.adjusted()) > limit:
        return cut(number_text(safe), limit), True
    if isinstance(safe, float) and not is_finite(safe):
        return name_of(safe), False
    if isinstance(safe, list | dict):
        text = json.dumps(safe, ensure_ascii=False)
        if len(text) > limit:
            return cut(text, limit), True
    return safe, False


def as_numbers(column: Sequence[Any], *, rounded: bool = False) -> list[Any]:
    """Return a column with its exact numbers as JSON numbers, or with all numbers as text if a double would change one.
    Of `rounded` numbers only the first digits after the point count."""
    exact = [cell for cell in column if _is_number(cell) and not isinstance(cell, float)]
    if not exact:
        return list(column)
    form = _number if all(fits(cell, rounded=rounded) for cell in exact) else number_text
    return [form(cell) if _is_number(cell) else cell for cell in column]


def plain(value: Any, binary: Binary = hexadecimal, limit: int | None = None) -> Any:
    """`value` as None, a bool, a number, a text, or a list or dict of JSON values."""
    if value is None or isinstance(value, bool | float | Decimal):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        # A lone surrogate, which some drivers let through, becomes a question mark. A longer text is cut first.
        longer = limit is not None and len(value) > limit
        return value if longer or value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, bytes | bytearray | memoryview):
        return binary(bytes(value))
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): _inner(item, binary) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_inner(item, binary) for item in value]
    return str(value)


def cut(text: str, limit: int) -> str:
    """Cuts a text to `limit` characters, with a note of its length."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def iso(text: str) -> str:
    """A date or time in ISO 8601: with a T, and with the minutes of its time zone."""
    return _HOURS.sub(r"\1:00", _MOMENT.sub(r"\1T", text))


def is_finite(number: float | Decimal) -> bool:
    """Whether a number is neither NaN nor infinite."""
    return number.is_finite() if isinstance(number, Decimal) else math.isfinite(number)


def name_of(number: float | Decimal) -> str:
    """The name of a number that JSON does not have."""
    return "NaN" if "nan" in str(number).casefold() else "Infinity" if number > 0 else "-Infinity"


def number_text(number: float | Decimal) -> str:
    """A number with all its digits; an exact one without an exponent."""
    if isinstance(number, int):
        return str(number)
    if not is_finite(number):
        return name_of(number)
    if isinstance(number, Decimal):
        return format(number, "f") if abs(number.adjusted()) < _MOST_DIGITS else str(number)
    return repr(number)


def fits(number: float | Decimal, *, rounded: bool = False) -> bool:
    """Whether a double holds the number; of a `rounded` one, its first digits."""
    if isinstance(number, int):
        return abs(number) <= LARGEST
    if isinstance(number, float) or not number.is_finite():
        return True
    if number.copy_abs() > LARGEST:
        return False
    if Decimal(repr(float(number))) == number:
        return True
    return rounded and int(number.as_tuple().exponent) < -_DIGITS and number.copy_abs() > _LEAST


def _inner(value: Any, binary: Binary) -> Any:
    found = plain(value, binary)
    if _is_number(found):
        return _number(found) if fits(found, rounded=True) else number_text(found)
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _number(number: float | Decimal) -> Any:
    """A JSON number, or the name of one that JSON does not have."""
    if not is_finite(number):
        return name_of(number)
    if isinstance(number, Decimal):
        return int(number) if number == number.to_integral_value() else float(number)
    return number
