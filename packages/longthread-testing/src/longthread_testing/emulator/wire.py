"""What a dialect of the emulator offers to the server: requests read, replies written, errors in the vendor's form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from longthread.messages.message import Message
from longthread_testing.emulator.faults import Refused, RuleBroken


def names_of_tools(body: Mapping[str, Any]) -> list[str]:
    """Return the names of the tools that have one: a provider's own have none, and a namespace has those of its
    tools."""
    given = body.get("tools") or ()
    tools = [inner for tool in given for inner in (tool["tools"] if tool.get("type") == "namespace" else (tool,))]
    named = (tool.get("function", tool) for tool in tools)
    return [tool["name"] for tool in named if "name" in tool]


@dataclass(frozen=True)
class ModelRequest:
    """A request that keeps the rules. `body` is whole, with what the provider holds of the conversation; `sent` is the
    body as it came. `rest` is the dialect's own."""

    sent: dict[str, Any]
    body: dict[str, Any]
    headers: Mapping[str, str]
    messages: list[Message]
    rest: Any = None

    @property
    def model(self) -> str:
        return str(self.body.get("model"))

    @property
    def tool_names(self) -> list[str]:
        return names_of_tools(self.body)

    @property
    def tokens(self) -> int:
        """The size of the input, about four characters a token."""
        said = {name: self.body.get(name) for name in ("system", "instructions", "messages", "input", "tools")}
        return len(json.dumps(said)) // 4 + 1


@dataclass(frozen=True)
class ModelReply:
    """A reply as one body, and as the events of a stream."""

    body: dict[str, Any]
    events: Iterator[bytes]


def json_bytes(value: Any) -> bytes:
    """Return JSON as UTF-8. Half a surrogate pair has no UTF-8 and stays escaped."""
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


class Wire(Protocol):
    request_id: str
    """The name of the header that names a request."""

    def read(self, body: dict[str, Any], headers: Mapping[str, str]) -> ModelRequest:
        """Return the request. Raises RuleBroken with the vendor's error."""
        ...

    def reply(self, request: ModelRequest, message: Message, id: str, *, hold: bool) -> ModelReply:  # noqa: A002
        """Return the reply, and keep it for later requests if `hold` and the request ask for it."""
        ...

    def release(self, request: ModelRequest) -> None:
        """The request was answered, whatever with."""
        ...

    def refusal(self, refused: Refused, request_id: str) -> dict[str, Any]:
        """Return the body of an error."""
        ...

    def error_event(self, refused: Refused, request_id: str, place: int) -> bytes:
        """Return an error as the event number `place` of a stream."""
        ...

    def forget(self) -> None:
        """Lose all that is held for later requests, as after its time or a restart."""
        ...


def read_request(wire: Wire, body: dict[str, Any], headers: Mapping[str, str]) -> ModelRequest:
    """Return the request. Raises RuleBroken with the vendor's error, or because a field has another form."""
    try:
        return wire.read(body, headers)
    except (AttributeError, KeyError, TypeError) as error:
        raise RuleBroken(Refused(400, f"The request does not have the form of this API: {error!r}")) from error
