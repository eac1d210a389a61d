"""Moments as models and clients write them."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta

from longthread.errors import InvalidInput


def moment_of(text: str | None, name: str, *, ends: bool = False) -> datetime | None:
    """The date or time (ISO 8601, in UTC where it names no zone) of an argument; None where there is no text.

    Args:
        ends: something is over then: with a date alone, at its end.

    Raises:
        InvalidInput: it is neither; `name` is that of the argument.
    """
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        reason = f"{name} is {text!r}; give a date or time such as 2027-05-08 or 2027-05-08T14:30."
        raise InvalidInput(reason=reason) from None
    if ends:
        moment = end_of(moment, text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def end_of(moment: datetime, text: str) -> datetime:
    """The end of the day, where the text that the moment was read from is a date alone."""
    with suppress(OverflowError, ValueError):
        date.fromisoformat(text.strip())
        return moment + timedelta(days=1)
    return moment
