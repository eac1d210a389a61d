"""Moments as a model writes them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from longthread.errors import InvalidInput


def moment(arguments: Mapping[str, Any], name: str) -> datetime | None:
    """The date or time (ISO 8601, in UTC where it names no zone) of an argument; None without it.

    Raises:
        InvalidInput: it is neither.
    """
    given = arguments.get(name)
    if not given:
        return None
    try:
        found = datetime.fromisoformat(given)
    except ValueError:
        reason = f"{name} is {given!r}; give a date or time such as 2027-05-08 or 2027-05-08T14:30."
        raise InvalidInput(reason=reason) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
