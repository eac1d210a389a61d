"""A client of OpenAI's Responses that keeps its conversation itself, and what lossy ones do to it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import httpx
import openai

MODEL = "gpt-6.2-sol"
CLOCK: dict[str, Any] = {
    "type": "function",
    "name": "clock",
    "description": "The time.",
    "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}},
    "strict": False,
}
Items = list[dict[str, Any]]
Change = Callable[[Items], Items]
"""What a client does to the items that it sends back."""


def exact(items: Items) -> Items:
    return items


def without_reasoning(items: Items) -> Items:
    return [item for item in items if item.get("type") != "reasoning"]


def without_fields(items: Items) -> Items:
    """Without ids, `phase` and `status`."""
    return [{key: item[key] for key in item if key not in ("id", "phase", "status")} for item in items]


def bare(items: Items) -> Items:
    return without_fields(without_reasoning(items))


def as_texts(items: Items) -> Items:
    """Messages without a type, their content a text; arguments respaced."""
    found = []
    for item in bare(items):
        if isinstance(item.get("content"), list):
            text = "".join(part["text"] for part in item["content"])
            item = {"role": item["role"], "content": text}
        elif "arguments" in item:
            item = item | {"arguments": item["arguments"].replace(" ", "").replace(":", " : ")}
        found.append(item)
    return found


def unencrypted(items: Items) -> Items:
    return [{key: item[key] for key in item if key != "encrypted_content"} for item in items]


def reordered(items: Items) -> Items:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(each) for each in value] if isinstance(value, list) else value

    return [turned(item) for item in without_reasoning(items)]


def with_nulls(items: Items) -> Items:
    """As an SDK writes what is absent."""
    return [{"id": None, "phase": None, "namespace": None, **item} for item in bare(items)]


LOSSY: list[Change] = [without_reasoning, without_fields, bare, as_texts, unencrypted, reordered, with_nulls]


class Talk:
    """A client that keeps its conversation, and sends it with `change`."""

    def __init__(self, url: str, change: Change = exact, *, streams: bool = False, **given: Any) -> None:
        self.client = openai.AsyncOpenAI(api_key="key", base_url=f"{url}/v1", max_retries=0)
        self.items: Items = []
        self.headers: httpx.Headers = httpx.Headers()
        self.events: list[Any] = []
        self._change = change
        self._streams = streams
        self._given: dict[str, Any] = {"tools": [CLOCK], "model": MODEL} | given

    async def __aenter__(self) -> Talk:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()

    async def send(self, given: Any) -> Any:
        """Send a request's input and return the response."""
        whole = {**self._given, "input": given}
        if not self._streams:
            raw = await self.client.responses.with_raw_response.create(**whole)
            self.headers = raw.headers
            return raw.parse()
        raw = await self.client.responses.with_raw_response.create(**whole, stream=True)
        self.headers = raw.headers
        self.events = [event async for event in raw.parse()]
        return self.events[-1].response

    async def add(self, *items: dict[str, Any]) -> Any:
        """Send the conversation with new items; the reply joins it."""
        self.items += items
        response = await self.send(self._change(copy.deepcopy(self.items)))
        self.items += [item.model_dump(mode="json", exclude_none=True) for item in response.output]
        return response

    async def say(self, text: str) -> Any:
        return await self.add({"role": "user", "content": text})

    async def ask_the_time(self, zone: str) -> Any:
        """A turn with a tool's call and its result."""
        response = await self.say(f'Please use the tool clock with {{"zone": "{zone}"}}')
        results = [
            {"type": "function_call_output", "call_id": item.call_id, "output": "12:00"}
            for item in response.output
            if item.type == "function_call"
        ]
        assert results
        return await self.add(*results)
