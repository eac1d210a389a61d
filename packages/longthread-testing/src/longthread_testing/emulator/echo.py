"""What the emulator says without a script: the same for the same request, and a tool call for a client that asks for
one."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from longthread.messages.message import Message

_CALL = re.compile(r"use the tool ([\w.-]+) with (?=\{)", re.IGNORECASE)
_MOST = 200
"""Characters of what was said that a reply repeats."""


def echo(messages: Sequence[Message], tools: Sequence[str]) -> Any:
    """Return a reply of a script: what the last message said. If it is a user's and says `use the tool NAME with
    {json}`, the reply is that call."""
    last = next((each for each in reversed(messages) if each.role in ("user", "tool")), Message("user"))
    if last.role == "tool":
        return f"The tool said: {last.text[:_MOST]}"
    return _calls(last.text, tools) or f"You said: {last.text[-_MOST:]}"


def _calls(text: str, tools: Sequence[str]) -> list[dict[str, Any]]:
    calls, place = [], 0
    while found := _CALL.search(text, place):
        place = found.end()
        try:
            args, end = json.JSONDecoder().raw_decode(text, place)
        except ValueError:
            continue
        if found[1] in tools:
            place = end  # what the arguments say is for the tool
            calls.append({"action": found[1], "args": args})
    return calls
