"""Whatever a client of OpenAI's Responses drops or cuts otherwise, the provider gets what it got before."""

from __future__ import annotations

import asyncio
import copy
import json
import random
import uuid
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.gateway.conftest import USER
from tests.gateway.responses_talk import CLOCK, MODEL, Items

from longthread.gateway.http import Incoming
from longthread.gateway.service import RESPONSES, Gateway, GatewayOptions
from longthread.gateway.upstream import Routes, Upstream
from longthread.messages.message import Message, tool_call
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.testing import ProviderEmulator, ProviderRules

quietly = settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
turns = st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 2**16)), min_size=1, max_size=5)


def reply(messages: list[Any]) -> Message:
    """A reply that the last words choose: any number of messages and of calls, with reasoning before some."""
    dice = random.Random(str(messages[-1].text))  # no secret
    blocks: list[dict[str, Any]] = []
    for number in range(dice.randint(0, 3)):
        if dice.random() < 0.6:
            blocks.append({"type": "reasoning", "summary": [f"thought {number}"] if dice.random() < 0.5 else []})
        phase = {"phase": "commentary"} if dice.random() < 0.5 else {}
        blocks.append({"type": "text", "text": f"part {number}", **phase})
    calls = [
        tool_call("clock", {"zone": "一", "n": number}, f"call_{uuid.uuid4().hex[:8]}")
        for number in range(dice.randint(0 if blocks else 1, 2))
    ]
    if calls and dice.random() < 0.5:
        blocks.append({"type": "reasoning", "summary": ["it needs the time"]})
    return Message("assistant", content=blocks, tool_calls=calls)


def cut(items: Items, seed: int) -> Items:
    """What a client makes of a conversation: it drops hidden parts, joins and cuts messages, respells arguments."""
    dice = random.Random(seed)  # no secret
    drops = dice.random()
    found: Items = []
    for item in copy.deepcopy(items):
        if item.get("type") == "reasoning":
            if dice.random() < drops:
                continue
            if dice.random() < 0.2:
                item.pop("encrypted_content")
        for name in ("id", "phase", "status"):
            if item.get("type") != "reasoning" and dice.random() < drops:
                item.pop(name, None)
        if "arguments" in item and dice.random() < 0.5:
            item["arguments"] = json.dumps(dict(reversed(json.loads(item["arguments"]).items())), indent=1)
        before = found[-1] if found else {}
        both = isinstance(item.get("content"), list) and isinstance(before.get("content"), list)
        if both and item["role"] == before["role"] and dice.random() < 0.4:
            before["content"] += item["content"]
        elif isinstance(item.get("content"), list) and len(item["content"]) > 1 and dice.random() < 0.4:
            found += [item | {"content": [part]} for part in item["content"]]
        elif isinstance(item.get("content"), list) and len(item["content"]) == 1 and dice.random() < 0.3:
            found.append({"role": item["role"], "content": item["content"][0]["text"]} | _fields(item))
        else:
            found.append(item)
    return found


def _fields(item: dict[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in ("id", "phase") if name in item}


def seen(items: Sequence[dict[str, Any]]) -> list[Any]:
    """What a provider reads, in order: each part of a message with the fields of its message at the first."""
    found: list[Any] = []
    for item in items:
        content = item.get("content")
        if "role" not in item:
            found.append({key: value for key, value in item.items() if key not in ("status", "arguments")})
            found[-1] |= {"arguments": json.loads(item["arguments"])} if "arguments" in item else {}
            continue
        fields = [_fields(item)] if _fields(item) else []
        texts = [content] if isinstance(content, str) else [part["text"] for part in content]
        found += [*fields, *((item["role"], text) for text in texts)]
    return found


class Behind:
    """The emulator behind a gateway."""

    def __init__(self, store: Driver, emulator: ProviderEmulator) -> None:
        self.emulator = emulator
        routes = Routes({"emulated": Upstream("emulated", emulator.anthropic_url, ["responses"])})
        self.gateway = Gateway(store, routes, GatewayOptions(USER))

    async def send(self, items: Items) -> Items:
        body = {"model": MODEL, "tools": [CLOCK], "input": items}
        asked = Incoming("POST", "/v1/responses", [(b"content-type", b"application/json")], json.dumps(body).encode())
        answer = await self.gateway.reply(RESPONSES, asked)
        assert answer.status == 200, answer.body
        output: Items = json.loads(answer.body)["output"]
        return output


async def talk(behind: Behind, seeds: Sequence[tuple[int, int]]) -> None:
    own = uuid.uuid4()
    items: Items = []
    for number, (words, seed) in enumerate(seeds):
        parts = [{"type": "input_text", "text": f"{own} {number} {words} {part}"} for part in range(1 + words % 2)]
        items.append({"role": "user", "content": parts})
        for step in range(4):
            output = await behind.send(cut(items, seed + step))
            sent = behind.emulator.requests[-1].body["input"]
            assert seen(sent) == seen(items)
            items += output
            calls = [item["call_id"] for item in output if item["type"] == "function_call"]
            if not calls:
                break
            results = [{"type": "function_call_output", "call_id": id_} for id_ in calls]
            last = " the last" if step == 2 else ""
            items += [result | {"output": f"{own} {number} {step} {words}{last}"} for result in results]
        if items[-1].get("type") == "function_call_output":
            return  # it called to the end: a conversation does not go on so


@quietly
@given(seeds=turns, stored=st.booleans())
def test_what_goes_up_is_what_went_up_before(store_address: str, seeds: list[tuple[int, int]], stored: bool) -> None:
    async def go() -> None:
        async with open_store(store_address) as store:
            with ProviderEmulator(reply, rules=ProviderRules(stored=stored)) as emulator:
                behind = Behind(store, emulator)
                try:
                    await talk(behind, seeds)
                finally:
                    await behind.gateway.close()

    asyncio.run(go())
