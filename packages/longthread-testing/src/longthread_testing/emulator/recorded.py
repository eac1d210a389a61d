"""A request as it came."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from longthread.messages.message import Message
from longthread_testing.emulator import anthropic, completions, responses
from longthread_testing.emulator.messages_api import PATH as ANTHROPIC
from longthread_testing.emulator.responses_api import PATH as RESPONSES
from longthread_testing.emulator.wire import names_of_tools


@dataclass(frozen=True)
class RecordedRequest:
    """One request as it came. `raw` are its bytes and `body` is the decoded JSON; header names are lower-case. `query`
    is what follows the `?`."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    raw: bytes = b""
    query: str = ""

    @property
    def tool_names(self) -> list[str]:
        return names_of_tools(self.body)

    @property
    def is_anthropic(self) -> bool:
        """Whether it has Anthropic's form; else OpenAI's."""
        return self.path.startswith(ANTHROPIC) or "anthropic-version" in self.headers

    @property
    def is_responses(self) -> bool:
        """Whether it has the form of OpenAI's Responses."""
        return self.path.startswith(RESPONSES)

    @property
    def messages(self) -> list[Message]:
        if self.is_responses:
            return responses.read_messages(self.body.get("instructions"), responses.items_of(self.body.get("input")))
        return anthropic.read_messages(self.body) if self.is_anthropic else completions.read_messages(self.body)


def decode_body(raw: bytes) -> tuple[dict[str, Any], str]:
    """Return the body of a request, and what is wrong with it."""
    try:
        body = json.loads(raw) if raw else {}
    except ValueError:
        return {}, "We could not parse the JSON body of your request."
    return (body, "") if isinstance(body, dict) else ({}, "The body of a request is a JSON object.")
