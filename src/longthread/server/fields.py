"""Fields of requests. Their JSON Schema allows what the server accepts, and nothing else."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AwareDatetime, BeforeValidator, Field, StringConstraints

_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_INK = r"[^\s\x00-\x1f\x85]"
"""A character that one sees."""


def _whole(value: Any) -> Any:
    """JSON has one kind of number: 5.0 is 5. Texts and truth values are none."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str | bool):
        raise ValueError("this is no whole number")
    return value


def _time(value: Any) -> Any:
    """Raises ValueError for the numbers and other forms that pydantic reads as times."""
    if isinstance(value, str) and _TIME.fullmatch(value) is None:
        raise ValueError("give a date and a time with its zone, such as 2030-01-31T12:00:00Z")
    if value is not None and not isinstance(value, str):
        raise ValueError("this is no text")
    return value


WHOLE = BeforeValidator(_whole)
"""Reads an `int` as JSON Schema does."""
Time = Annotated[AwareDatetime, BeforeValidator(_time)]
Words = Annotated[str, StringConstraints(pattern=_INK)]
"""A text that is not blank."""
Name = Annotated[str, StringConstraints(pattern=rf"^[^\x00]*{_INK}[^\x00]*$")]
"""A text that is not blank and holds no NUL."""
PlainText = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
"""A text without NUL."""

Flag = Annotated[bool, Field(strict=True)]
"""True or false: 0 and "yes" are none."""
