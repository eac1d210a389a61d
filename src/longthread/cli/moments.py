"""Moments as people write them: a date, a time, or how long it is from now."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from longthread.errors import InvalidInput
from longthread.model.moment import end_of

_AGE = re.compile(r"(\d+)\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def age(text: str) -> timedelta | None:
    """A number with s, m, h, d or w, such as 90d; None for anything else."""
    match = _AGE.fullmatch(text.strip())
    with suppress(OverflowError):
        return timedelta(seconds=int(match[1]) * _SECONDS[match[2]]) if match else None
    return None


def moment(text: str, option: str, *, ahead: bool, ends: bool = False) -> datetime:
    """A date or time (ISO 8601, of this machine's zone where it names none), or an age: so long ago, or `ahead`. What
    `ends` then does so at the end of a date.

    Raises:
        InvalidInput: it is neither; the message names the option.
    """
    span = age(text)
    with suppress(OverflowError, ValueError):
        if span is not None:
            return datetime.now(UTC) + (span if ahead else -span)
        found = datetime.fromisoformat(text.strip())
        found = end_of(found, text) if ends else found
        return found if found.tzinfo else found.astimezone()
    reason = f"{option} is {text!r}; allowed is a date or time such as 2027-05-08, or an age such as 30d."
    raise InvalidInput(reason=reason)
