"""Moments as models and clients write them."""

from __future__ import annotations

from datetime import UTC, datetime

from longthread.errors import InvalidInput


def moment_of(text: str | None, name: str) -> datetime | None:
    """The date or time (ISO 8601, in UTC where it names no zone) of an argument; None where there is no text.

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
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
