"""What a call of a chat model raises, whichever provider it is.

    ProviderError
     ├── RateLimited           retry, after `retry_after` seconds if known
     ├── ServerFailed          the provider's own fault: retry
     │    └── Overloaded
     ├── ConnectionBroken      no reply, or the connection broke: retry
     │    ├── TimedOut
     │    └── StreamTruncated  the reply ended in the middle
     └── BadRequest            the same request fails again
          ├── ReplyTooLong
          ├── AuthenticationFailed
          └── ContextOverflow  fewer messages may pass

They are no `LongthreadError`s: a run may retry, or ask another model, and reports the last one as `ModelFailed`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import inf
from typing import Any

from longthread.errors import LongthreadError

_AGAIN = frozenset({408, 409, 425})
"""Statuses below 500 after which the same request may succeed."""
_OVERLOADED = frozenset({503, 529})
_SHORTEST = 8
"""Characters of a secret to hide. A shorter one guards nothing, and would be found within words."""
_DEEPEST = 50
"""Levels of an error object that are kept. A provider may send thousands."""
_SECRET = re.compile(r"(?:key|token|secret|passw(?:or)?d|signature|sig|auth|credentials?)$", re.IGNORECASE)


class ProviderError(Exception):  # a run converts it to an error of ours
    """A call of a chat model failed.

    `status_code` is the HTTP status, or what stands for one; `retry_after` the seconds that the provider asks to wait;
    `body` its error object.
    """

    def __init__(
        self,
        message: str,
        *,
        status_code: int | None = None,
        retry_after: float | None = None,
        body: Any = None,
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.retry_after = retry_after
        self.body = body


class RateLimited(ProviderError):
    """More than the provider allows in a time."""


class ServerFailed(ProviderError):
    """The provider failed by itself."""


class Overloaded(ServerFailed):
    """The provider has too much to do."""


class ConnectionBroken(ProviderError):
    """The provider cannot be reached, or the connection to it broke. `address` is the one that was asked, if known."""

    def __init__(self, message: str, *, address: str = "", **about: Any) -> None:
        super().__init__(message, **about)
        self.address = address


class TimedOut(ConnectionBroken):
    """No answer came in time."""


class StreamTruncated(ConnectionBroken):
    """A reply ended before its end."""


class BadRequest(ProviderError):
    """The provider refuses what was sent."""


class AuthenticationFailed(BadRequest):
    """The key is missing or wrong, or does not allow this."""


class ReplyTooLong(BadRequest):
    """The reply went beyond a limit of ours, as of a model that repeats itself without an end: it was broken off."""


class ContextOverflow(BadRequest):
    """The messages do not fit into the model's context window."""


def error_of(
    status: int | None, message: str, body: Any = None, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """Return the error for an HTTP status and what the provider said with it. No status: `ServerFailed`."""
    kind = ServerFailed if status is None else _kind(status)
    return kind(message, status_code=status, retry_after=retry_after(headers or {}), body=body)


def _kind(status: int) -> type[ProviderError]:
    if status == 429:
        return RateLimited
    if status in (401, 403):
        return AuthenticationFailed
    if status in _OVERLOADED:
        return Overloaded
    if status >= 500 or status in _AGAIN or status < 400:
        return ServerFailed
    return BadRequest


def names_secret(name: str) -> bool:
    """Whether what has this name, such as `api_key`, is a secret."""
    return _SECRET.search(name) is not None


def hidden(value: Any, secrets: Collection[str], levels: int = _DEEPEST) -> Any:
    """Return a text, or each text of a JSON value, with `***` for these secrets: providers quote wrong keys. What lies
    deeper than so many levels is left out."""
    if isinstance(value, str):
        for secret in sorted(secrets, key=len, reverse=True):
            value = value.replace(secret, "***") if len(secret) >= _SHORTEST else value
        return value
    if isinstance(value, Mapping | list | tuple) and levels == 0:
        return "…"
    if isinstance(value, Mapping):
        return {hidden(key, secrets): hidden(each, secrets, levels - 1) for key, each in value.items()}
    return [hidden(each, secrets, levels - 1) for each in value] if isinstance(value, list | tuple) else value


def without_secrets(error: ProviderError, secrets: Collection[str]) -> ProviderError:
    """Return the error, which tells none of these secrets any more."""
    error.args, error.body = (hidden(str(error), secrets),), hidden(error.body, secrets)
    return error


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait from `retry-after-ms` or `Retry-After`, which has seconds or a date."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        if (said := headers.get(name)) is None:
            continue
        try:
            seconds = float(said) / unit
        except ValueError:
            return _until(said, headers.get("date"))
        return seconds if 0 <= seconds < inf else None
    return None


def _until(date: str, sent: str | None) -> float | None:
    """Return the seconds between two dates of one answer: its clock need not be ours. Without the second one ours
    counts."""
    at = _moment(date)
    since = (_moment(sent) if sent is not None else None) or datetime.now(UTC)
    return max((at - since).total_seconds(), 0.0) if at is not None else None


def _moment(date: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(date)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its cause, that one's cause, and so on; each once, since an error may be its own cause."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of an error or its cause; each SDK stores it elsewhere."""
    for each in causes(error):
        response = getattr(each, "response", None)
        for status in (
            getattr(each, "status_code", None),
            getattr(response, "status_code", None),
            getattr(each, "code", None),
        ):
            if isinstance(status, int) and 100 <= status < 600:
                return status
    return None


def first_line(error: BaseException) -> str:
    """Return what an error says, as one sentence; its class if it says nothing."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{(lines or [type(error).__name__])[0].rstrip('.')}."


@contextmanager
def constructor_errors(refused: Callable[[Exception], LongthreadError]) -> Iterator[None]:
    """Raise `refused(error)` for whatever a provider's class raises while it is made."""
    try:
        yield
    except Exception as error:  # each provider's constructor has its own errors
        raise refused(error) from error
