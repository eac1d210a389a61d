"""The faults of a provider. Each is one reply of a `ProviderEmulator`'s script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from longthread.messages.message import Message, invalid_tool_call

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}

_NO_CALL = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
_NO_RESULT = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The "
    "following tool_call_ids did not have response messages: "
)


@dataclass(frozen=True)
class Refused:
    """An HTTP status with the vendor's error object. `retry_after` is in seconds. `param` is OpenAI's, `details` is
    Anthropic's."""

    status: int = 429
    message: str = "refused by the script"
    code: str | None = None
    retry_after: float | None = None
    param: str | None = None
    details: Mapping[str, Any] | None = None

    @property
    def body(self) -> dict[str, Any]:
        kind = _TYPES.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"retry-after": f"{self.retry_after:g}"}


@dataclass(frozen=True)
class Slow:
    """`reply` comes after `seconds`, and each streamed piece after `between` seconds more."""

    reply: Any
    seconds: float = 0.0
    between: float = 0.0


@dataclass(frozen=True)
class Dropped:
    """The connection breaks within `reply`: after `pieces` streamed pieces (-1: before the last), or in the middle of a
    body."""

    reply: Any = field(default="this reply is never seen whole")
    pieces: int = 2


@dataclass(frozen=True)
class StreamError:
    """An `error` event ends the stream of `reply` after `pieces` events (-1: before the last). Without a stream, it is
    an HTTP error."""

    reply: Any = field(default="this reply is never seen whole")
    pieces: int = 2
    error: Refused = Refused(529, "Overloaded")


class RuleBroken(Exception):  # the client gets it as the vendor's error
    """The request breaks a rule of the vendor's."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.message)
        self.refused = refused


def refuse_unpaired(messages: Sequence[Message]) -> Refused | None:
    """Refuse, as OpenAI does, a request in which a call has no result right after it, or a result no call."""
    waiting: Counter[str | None] = Counter()
    for message in [*messages, Message("user")]:
        if message.role == "tool":
            if not waiting[message.tool_call_id]:
                return Refused(400, _NO_CALL)
            waiting[message.tool_call_id] -= 1
        elif waiting.total():
            return Refused(400, _NO_RESULT + ", ".join(map(str, waiting.elements())))
        else:
            waiting = Counter(call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls))
    return None


def broken_call(name: str, arguments: str, *, call_id: str = "call_broken") -> Message:
    """Return a native call with the text `arguments`, which need not be JSON."""
    return Message("assistant", invalid_tool_calls=[invalid_tool_call(name, arguments, call_id)])
