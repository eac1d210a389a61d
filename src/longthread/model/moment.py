"""Parses dates and times of models and clients."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta

from longthread.errors import InvalidInput


def moment_of(text: str | None, name: str, *, ends: bool = False) -> datetime | None:
    """Parses the argument `name` as ISO 8601, by default in UTC; None for an empty text. With `ends` a date means the
    end of its day. Raises InvalidInput."""
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
    """The end of the day if the text is only a date."""
    with suppress(OverflowError, ValueError):
        date.fromisoformat(text.strip())
        return moment + timedelta(days=1)
    return moment
