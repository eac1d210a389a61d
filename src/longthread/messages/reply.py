"""A streamed reply: its pieces are joined, and the arguments of its calls are never completed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from longthread.messages.json_objects import decode
from longthread.messages.message import invalid_tool_call, tool_call


@dataclass(slots=True)
class CallPieces:
    """One call of a reply. `beside` holds the provider's own keys."""

    id: str | None = None
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    beside: dict[str, Any] = field(default_factory=dict)

    def add_name(self, name: str | None) -> None:
        """Add a piece of the name. Some servers repeat the whole name with every piece."""
        if name and name != self.name:
            self.name += name

    def add_arguments(self, arguments: Any) -> None:
        """Add a piece of the arguments; some servers send the object itself."""
        if arguments:
            self.arguments.append(arguments if isinstance(arguments, str) else json.dumps(arguments))


def read_calls(pieces: list[CallPieces]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the calls of a whole reply: the readable ones, and those whose arguments are no JSON object."""
    read, unread = [], []
    for each in pieces:
        text = "".join(each.arguments)
        args = decode(text.strip()) if text.strip() else {}
        if isinstance(args, dict):
            read.append(tool_call(each.name, args, each.id) | each.beside)
        else:
            unread.append(invalid_tool_call(each.name, text, each.id, args))
    return read, unread


def usage_of(input_tokens: Any, output_tokens: Any, cache_read: Any = 0, cache_written: Any = 0) -> dict[str, Any]:
    """Return a message's usage. `input_tokens` counts all input, cached or not."""
    given, made = _count(input_tokens), _count(output_tokens)
    usage: dict[str, Any] = {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}
    details = {"cache_read": _count(cache_read), "cache_creation": _count(cache_written)}
    if details := {name: count for name, count in details.items() if count}:
        usage["input_token_details"] = details
    return usage


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
