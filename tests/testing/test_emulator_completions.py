"""What vendors add to chat completions and want back from the client."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from longthread.messages.message import Message, tool_call
from longthread.testing import ProviderEmulator, ProviderRules

ASK = {"role": "user", "content": 'use the tool add with {"a": 1}'}
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


async def ask(provider: ProviderEmulator, messages: list[dict[str, Any]], **more: Any) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(provider.app), base_url="http://emulator") as client:
        body = {"model": "m", "messages": messages, "tools": [TOOL], **more}
        return await client.post("/v1/chat/completions", json=body)


async def called(provider: ProviderEmulator) -> list[dict[str, Any]]:
    """Return a question, its call as the provider made it, and the result."""
    said = (await ask(provider, [ASK])).json()["choices"][0]["message"]
    return [ASK, said, {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "3"}]


def deltas(reply: httpx.Response) -> list[dict[str, Any]]:
    lines = [line[6:] for line in reply.text.splitlines() if line.startswith("data: {")]
    return [choice["delta"] for line in lines for choice in json.loads(line)["choices"]]


@pytest.mark.parametrize(
    ("vendor", "told"),
    [
        ("deepseek", "The `reasoning_content` in the thinking mode must be passed back to the API."),
        ("kimi", "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"),
    ],
)
async def test_reasoning_comes_back_with_calls(vendor: Any, told: str) -> None:
    provider = ProviderEmulator(None, rules=ProviderRules(reasoning_content=vendor))
    talk = await called(provider)
    final = (await ask(provider, talk)).json()["choices"][0]["message"]
    assert final["reasoning_content"] and final["content"] == "The tool said: 3"
    later = [{"role": "assistant", "content": final["content"]}, {"role": "user", "content": "And?"}]
    assert (await ask(provider, [*talk, *later])).status_code == 200  # without calls it need not come back
    for value in ("", None, "missing"):
        bare = copy.deepcopy(talk)
        bare[1]["reasoning_content"] = value
        if value == "missing":
            del bare[1]["reasoning_content"]
        for messages in (bare, [*bare, *later]):
            reply = await ask(provider, messages)
            assert (reply.status_code, reply.json()["error"]["message"]) == (400, told)
    talk[1]["reasoning_content"] += " "
    reply = await ask(provider, talk)
    assert (reply.status_code, reply.json()["error"]["message"]) == (
        400,
        "The reasoning_content of the assistant message at index 1 is not what the model said.",
    )
    assert (await ask(ProviderEmulator(None), bare)).status_code == 200


async def test_reasoning_of_the_script_stays_and_is_streamed() -> None:
    calls = [tool_call("add", {}, "c")]
    reply = Message("assistant", "", {"reasoning_content": "1 and 2, in pieces"}, tool_calls=calls)
    provider = ProviderEmulator([reply], rules=ProviderRules(reasoning_content="deepseek"))
    streamed = deltas(await ask(provider, [ASK], stream=True))
    assert "".join(each.get("reasoning_content", "") for each in streamed) == "1 and 2, in pieces"


def _signature(message: dict[str, Any]) -> dict[str, Any]:
    google: dict[str, Any] = message["tool_calls"][0]["extra_content"]["google"]
    return google


def _absent(message: dict[str, Any]) -> None:
    del message["tool_calls"][0]["extra_content"]


def _forged(message: dict[str, Any]) -> None:
    _signature(message)["thought_signature"] = "Zm9yZ2Vk"


@pytest.mark.parametrize(
    ("change", "told"),
    [(_absent, "Function call is missing a thought_signature"), (_forged, "Thought signature is not")],
)
async def test_calls_of_this_turn_are_signed(change: Callable[..., None], told: str) -> None:
    provider = ProviderEmulator(None, rules=ProviderRules(thought_signatures=True))
    talk = await called(provider)
    assert (await ask(provider, talk)).status_code == 200
    change(talk[1])
    reply = await ask(provider, talk)
    assert reply.status_code == 400
    assert reply.json()["error"]["message"].startswith(told)
    later = [{"role": "assistant", "content": "3"}, {"role": "user", "content": "And?"}]
    assert (await ask(provider, [*talk, *later])).status_code == 200


async def test_the_first_of_parallel_calls_is_signed_and_a_sentinel_may_stand_for_it() -> None:
    both = [{"action": "add", "args": {}}, {"action": "add", "args": {}}]
    provider = ProviderEmulator([both, both, "ok"], rules=ProviderRules(thought_signatures=True))
    said = (await ask(provider, [ASK])).json()["choices"][0]["message"]
    assert ["extra_content" in each for each in said["tool_calls"]] == [True, False]
    streamed = [
        each["tool_calls"][0] for each in deltas(await ask(provider, [ASK], stream=True)) if "tool_calls" in each
    ]
    assert [each["index"] for each in streamed if "extra_content" in each] == [0]
    _signature(said)["thought_signature"] = "skip_thought_signature_validator"
    results = [{"role": "tool", "tool_call_id": each["id"], "content": "3"} for each in said["tool_calls"]]
    assert (await ask(provider, [ASK, said, *results])).status_code == 200
