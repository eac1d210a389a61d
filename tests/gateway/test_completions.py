"""Chat Completions through the gateway: what lossy clients drop comes back, and what they change wins."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

import openai
import pytest
from tests.gateway.conftest import OPENED, Start

from longthread.testing import ProviderEmulator, ProviderRules

pytestmark = pytest.mark.one_backend

MODEL = "deepseek-v4"
PARAMETERS = {"type": "object", "properties": {"zone": {"type": "string"}}}
CLOCK = {"type": "function", "function": {"name": "clock", "description": "The time.", "parameters": PARAMETERS}}
HIDDEN = ("reasoning_content", "reasoning", "reasoning_details", "extra_content")
VENDORS = {
    "deepseek": ProviderRules(reasoning_content="deepseek"),
    "kimi": ProviderRules(reasoning_content="kimi"),
    "gemini": ProviderRules(thought_signatures=True),
    "both": ProviderRules(reasoning_content="kimi", thought_signatures=True),
}
Messages = list[dict[str, Any]]
Change = Callable[[Messages], Messages]
"""What a client does to the messages that it sends back."""


def lossy(messages: Messages) -> Messages:
    """As ChatOpenAI: what it does not know is gone."""
    found = [{key: value for key, value in each.items() if key not in HIDDEN} for each in messages]
    for each in found:
        if "tool_calls" in each:
            each["tool_calls"] = [
                {key: value for key, value in call.items() if key not in HIDDEN} for call in each["tool_calls"]
            ]
    return found


def respelled(messages: Messages) -> Messages:
    """Keys in another order, arguments with other spaces, null as an empty text, and texts as blocks."""

    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(each) for each in value] if isinstance(value, list) else value

    found = lossy(messages)
    for each in found:
        content = each.get("content")
        each["content"] = [{"type": "text", "text": content}] if content else ""
        for call in each.get("tool_calls") or ():
            call["function"]["arguments"] = json.dumps(json.loads(call["function"]["arguments"]), indent=2)
    return [turned(each) for each in found]


def half_lossy(messages: Messages) -> Messages:
    """Every other message loses what is hidden."""
    return [each if number % 4 == 1 else lossy([each])[0] for number, each in enumerate(messages)]


def exact(messages: Messages) -> Messages:
    return messages


class Talk:
    """A client that keeps its conversation, and sends it with `change`."""

    def __init__(self, url: str, change: Change = exact, *, streams: bool = False, **given: Any) -> None:
        self.client = openai.AsyncOpenAI(api_key="key", base_url=f"{url}/v1", max_retries=0)
        OPENED.append(self.client)
        self.messages: Messages = [{"role": "system", "content": "You tell the time."}]
        self.headers: Mapping[str, str] = {}
        self._change = change
        self._streams = streams
        self._given = {"model": MODEL, "tools": [CLOCK]} | given

    async def say(self, *messages: dict[str, Any]) -> dict[str, Any]:
        self.messages += messages
        given: Any = self._given | {"messages": self._change(copy.deepcopy(self.messages))}
        if self._streams:
            async with self.client.chat.completions.stream(**given) as stream:
                found = await stream.get_final_completion()
                self.headers = stream._response.headers  # the helper shows them nowhere else
        else:
            raw = await self.client.chat.completions.with_raw_response.create(**given)
            found, self.headers = raw.parse(), raw.headers
        reply = found.choices[0].message.model_dump(mode="json", exclude_none=True)
        for call in reply.get("tool_calls") or ():
            call["function"].pop("parsed_arguments", None)
            call.pop("index", None)
        self.messages.append(reply)
        return reply

    async def ask_the_time(self, *zones: str) -> dict[str, Any]:
        """A turn with calls and their results."""
        wanted = " and ".join(f'use the tool clock with {{"zone": "{zone}"}}' for zone in zones)
        reply = await self.say({"role": "user", "content": wanted})
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "12:00"} for call in reply["tool_calls"]]
        return await self.say(*results)


def went_up(emulator: ProviderEmulator) -> dict[str, Any]:
    return emulator.requests[-1].body


def hidden(messages: Messages) -> list[Any]:
    """What messages hold beside what the model sees."""
    found = [each[name] for each in messages for name in HIDDEN if name in each]
    return found + [
        call[name] for each in messages for call in each.get("tool_calls") or () for name in HIDDEN if name in call
    ]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("change", [lossy, respelled, half_lossy])
async def test_what_a_client_drops_comes_back(start: Start, change: Change, vendor: str, streams: bool) -> None:
    with ProviderEmulator(None, rules=VENDORS[vendor]) as provider:
        with pytest.raises(openai.BadRequestError):
            await Talk(provider.anthropic_url, lossy, streams=streams).ask_the_time("direct")
        talk = Talk(await start(provider), change, streams=streams)
        for zone in ("UTC", "CET"):
            await talk.ask_the_time(zone, f"also {zone}")
        assert int(talk.headers["x-longthread-restored"]) >= 2
        assert hidden(went_up(provider)["messages"]) == hidden(talk.messages[:-1]) != []
