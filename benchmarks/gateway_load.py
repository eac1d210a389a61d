"""The load of `gateway.py`: conversations of about 200 messages and 140 KB, and a client that costs little."""

from __future__ import annotations

import http.client
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from talk import Talk

MESSAGES = 200
"""Messages of a full conversation, the next question not counted."""
FROM_ELSEWHERE = 40
"""How many of them another program made, with calls of tools: the first request brings them."""
_QUESTION = 1_250
"""Bytes of a question, about."""
_TOOLS = [
    {"name": name, "description": f"Returns the {name} of a place.", "input_schema": _schema}
    for name in ("weather", "population", "history", "map")
    for _schema in [{"type": "object", "properties": {"place": {"type": "string"}, "year": {"type": "integer"}}}]
]


@dataclass
class Answer:
    """What came back, and after how many ms its first byte and its last."""

    status: int
    restored: int
    first_ms: float
    last_ms: float
    content: list[dict[str, Any]]
    size: int


class Client:
    """One connection. It parses replies after the clock has stopped."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)

    def ask(self, body: bytes, *, streams: bool) -> Answer:
        headers = {"content-type": "application/json", "x-api-key": "sk-bench", "anthropic-version": "2023-06-01"}
        began = time.perf_counter()
        self._connection.request("POST", "/v1/messages", body, headers)
        response = self._connection.getresponse()
        first = response.read1(65_536) if streams else b""
        then = time.perf_counter()
        answered = first + response.read()
        ended = time.perf_counter()
        content: list[dict[str, Any]] = []
        if response.status == 200:
            content = _streamed(answered) if streams else json.loads(answered)["content"]
        restored = int(response.headers.get("x-longthread-restored", 0))
        return Answer(response.status, restored, 1000 * (then - began), 1000 * (ended - began), content, len(answered))

    def close(self) -> None:
        self._connection.close()


@dataclass
class Conversation:
    """A client's conversation.

    Args:
        strips: the client does not send thinking back.
    """

    number: int
    strips: bool
    model: str = "claude-lean-5"
    messages: list[dict[str, Any]] = field(default_factory=list)
    unique: int = 0
    """Bytes of the JSON that has gone through, everything once: instructions, messages, and thinking in replies."""

    def __post_init__(self) -> None:
        self._talk = Talk(1000 + self.number)
        self._random = random.Random(self.number)
        self._system = self._text(900)
        self.unique += _size([self._system, _TOOLS])

    def begin(self, count: int) -> None:
        """Add messages that another program made."""
        while len(self.messages) + 4 <= count:
            self._add("user", [{"type": "text", "text": self._text(400)}])
            call = f"toolu_{self.number}_{len(self.messages)}"
            args = {"place": self._text(20), "year": self._random.randint(1200, 2030)}
            use = {"type": "tool_use", "id": call, "name": self._random.choice(_TOOLS)["name"], "input": args}
            self._add("assistant", [{"type": "text", "text": self._text(100)}, use])
            result = {"type": "tool_result", "tool_use_id": call, "content": self._text(1_500)}
            self._add("user", [result])
            self._add("assistant", [{"type": "text", "text": self._text(700)}])

    def question(self, *, streams: bool) -> bytes:
        """Return the next request. The question is one of the messages from now on."""
        self._add("user", self._text(_QUESTION))
        return self._request(streams=streams)

    def call(self, number: int, *, streams: bool) -> bytes:
        """Return a request that the emulator answers with a call."""
        self._add("user", f'{self._text(_QUESTION)}\nuse the tool weather with {{"place": "{number}"}}')
        return self._request(streams=streams)

    def result(self, call_id: str, *, streams: bool) -> bytes:
        """Return the request with the result of a call."""
        self._add("user", [{"type": "tool_result", "tool_use_id": call_id, "content": self._text(_QUESTION)}])
        return self._request(streams=streams)

    def _request(self, *, streams: bool) -> bytes:
        asked = {
            "model": self.model,
            "max_tokens": 2048,
            "system": self._system,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "tools": _TOOLS,
            "messages": self.messages,
            "stream": streams,
        }
        return json.dumps(asked, ensure_ascii=False).encode()

    def answered(self, content: Sequence[dict[str, Any]]) -> None:
        """Go on with a reply."""
        self.unique += _size({"role": "assistant", "content": content})
        kept = [block for block in content if not (self.strips and "thinking" in block["type"])]
        self.messages.append({"role": "assistant", "content": kept})

    def _add(self, role: str, content: Any) -> None:
        self.messages.append({"role": role, "content": content})
        self.unique += _size(self.messages[-1])

    def _text(self, size: int) -> str:
        text = ""
        while len(text.encode()) < size:
            text += self._talk.sentence(chinese=self._random.random() < 0.25) + self._random.choice(". .\n\n? 。")
        return text


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


def _streamed(body: bytes) -> list[dict[str, Any]]:
    """Return the blocks of a streamed reply, as the SDK puts them together."""
    blocks: list[dict[str, Any]] = []
    for line in body.split(b"\n"):
        if not line.startswith(b"data:"):
            continue
        event = json.loads(line[5:])
        if event["type"] == "content_block_start":
            blocks.append(event["content_block"])
        elif event["type"] == "content_block_delta":
            kind, said = event["delta"].values()
            name = {"input_json_delta": "input"}.get(kind, kind.removesuffix("_delta"))
            before = blocks[-1].get(name)
            blocks[-1][name] = (before if isinstance(before, str) else "") + said
    for block in blocks:
        if isinstance(block.get("input"), str):
            block["input"] = json.loads(block["input"])
    return blocks
