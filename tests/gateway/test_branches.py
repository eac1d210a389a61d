"""Random conversations through the gateway, by clients that drop and respell what they like.

The provider binds each thinking block to all that was before it, so that its 200 shows that all came back exactly.
"""

from __future__ import annotations

import asyncio
import copy
import json
import random
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.gateway.conftest import USER

from longthread.gateway.http import Incoming
from longthread.gateway.service import ANTHROPIC, Gateway, GatewayOptions
from longthread.gateway.upstream import Routes, Upstream
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.testing import ProviderEmulator, ProviderRules

MODEL = "claude-opus-5-5"
CLOCK = {"name": "clock", "input_schema": {"type": "object"}}
Messages = list[dict[str, Any]]
quietly = settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
moves = st.lists(
    st.tuples(st.sampled_from(["say", "call", "rewind", "edit", "other", "again"]), st.integers(0, 2**16)),
    min_size=3,
    max_size=9,
)


class Provider:
    """The emulator behind a gateway."""

    def __init__(self, store: Driver, emulator: ProviderEmulator) -> None:
        self.emulator = emulator
        routes = Routes({"emulated": Upstream("emulated", emulator.anthropic_url, ["anthropic"])})
        self.gateway = Gateway(store, routes, GatewayOptions(USER))

    async def reply(self, messages: Messages, **given: Any) -> tuple[dict[str, Any], dict[str, str]]:
        body = {"model": MODEL, "max_tokens": 2000, "tools": [CLOCK], "messages": messages}
        body |= {"thinking": {"type": "adaptive"}} | given
        asked = Incoming("POST", "/v1/messages", [(b"content-type", b"application/json")], json.dumps(body).encode())
        answer = await self.gateway.reply(ANTHROPIC, asked)
        assert answer.status == 200, answer.body
        return json.loads(answer.body), {name.decode(): value.decode() for name, value in answer.headers}


def lossy(messages: Messages, seed: int) -> Messages:
    """What a client makes of a conversation: it drops thinking or its signature, cuts messages, respells contents."""
    dice = random.Random(seed)  # no secret
    drops = dice.random()
    found: Messages = []
    for each in copy.deepcopy(messages):
        blocks = [block for block in each["content"] if block["type"] != "thinking" or dice.random() > drops]
        for block in blocks:
            if block["type"] == "thinking" and dice.random() < 0.2:
                block.pop("signature")
            elif block["type"] != "thinking" and dice.random() < 0.2:
                block["cache_control"] = {"type": "ephemeral"}
            if block["type"] == "tool_result" and dice.random() < 0.5:
                block["content"] = [{"type": "text", "text": block["content"]}]
        if len(blocks) == 1 and blocks[0]["type"] == "text" and dice.random() < 0.5:
            found.append({"content": blocks[0]["text"], "role": each["role"]})
        elif each["role"] == "assistant" and dice.random() < 0.3:
            found += [{"role": "assistant", "content": [block]} for block in blocks]
        elif blocks:
            found.append({"role": each["role"], "content": blocks})
    return found


def text(said: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": said}]}


async def talked(provider: Provider, steps: list[tuple[str, int]]) -> list[Messages]:
    """Play moves of a client; returns its conversations, as the provider said them."""
    # Two conversations that say the same cannot be told apart, and examples share a store.
    own = uuid.uuid4()
    branches: list[Messages] = [[]]
    current: Messages = branches[0]
    for number, (move, seed) in enumerate(steps):
        if move == "rewind" and len(current) > 2:
            users = [
                n for n, each in enumerate(current) if each["content"][0]["type"] == "text" and each["role"] == "user"
            ]
            current = current[: users[seed % len(users)]]
            branches.append(current)
        elif move == "edit" and len(current) > 2:
            current = [text(f"edited {own} {number}")]
            branches.append(current)
        elif move == "other":
            current = branches[seed % len(branches)]
        if move == "again" and current and current[-1]["role"] == "assistant":
            current.pop()
        elif not current or current[-1]["role"] == "assistant":
            asks = f' use the tool clock with {{"n": {number}}}' if move == "call" else ""
            current.append(text(f"{own} {number}{asks}"))
        reply, _ = await provider.reply(lossy(current, seed))
        current.append({"role": "assistant", "content": reply["content"]})
        calls = [block["id"] for block in reply["content"] if block["type"] == "tool_use"]
        if calls:
            results = [{"type": "tool_result", "tool_use_id": id_, "content": f"at {number}"} for id_ in calls]
            current.append({"role": "user", "content": results})
            reply, _ = await provider.reply(lossy(current, seed + 1))
            current.append({"role": "assistant", "content": reply["content"]})
    return branches


def run(address: str, work: Callable[[Driver, Provider], Awaitable[None]]) -> None:
    async def go() -> None:
        rules = ProviderRules(signatures=True, binding=True)
        async with open_store(address) as store:
            with ProviderEmulator(None, rules=rules) as emulator:
                provider = Provider(store, emulator)
                try:
                    await work(store, provider)
                finally:
                    await provider.gateway.close()

    asyncio.run(go())


@quietly
@given(steps=moves)
def test_no_lossy_client_is_ever_refused(store_address: str, steps: list[tuple[str, int]]) -> None:
    async def work(store: Driver, provider: Provider) -> None:
        branches = await talked(provider, steps)
        # Each conversation goes on, with all its thinking, however it is sent.
        for branch in branches:
            if branch:
                said = [*branch, text("and now?")] if branch[-1]["role"] == "assistant" else branch
                await provider.reply(lossy(said, 7))
                assert sent_thinking(provider) == thinking_of(said)

    run(store_address, work)


def thinking_of(messages: Messages) -> list[dict[str, Any]]:
    return [block for each in messages for block in each["content"] if block["type"] == "thinking"]


def sent_thinking(provider: Provider) -> list[dict[str, Any]]:
    sent = provider.emulator.requests[-1].body["messages"]
    return [
        block
        for each in sent
        if isinstance(each["content"], list)
        for block in each["content"]
        if block["type"] == "thinking"
    ]


@quietly
@given(seeds=st.lists(st.integers(0, 99), min_size=2, max_size=4, unique=True))
def test_branches_that_are_written_at_once_do_not_disturb_each_other(store_address: str, seeds: list[int]) -> None:
    async def work(store: Driver, provider: Provider) -> None:
        start = [text(f"begin {uuid.uuid4()}")]
        reply, headers = await provider.reply(start)
        stem = [*start, {"role": "assistant", "content": reply["content"]}]
        stems = [[*stem, text(f"branch {seed}")] for seed in seeds]
        answers = await asyncio.gather(*(provider.reply(lossy(each, 3)) for each in stems))
        for said, (answer, own) in zip(stems, answers, strict=True):
            assert own["x-conversation-id"] == headers["x-conversation-id"]
            said += [{"role": "assistant", "content": answer["content"]}, text("go on")]
            await provider.reply(lossy(said, 5))
            assert sent_thinking(provider) == thinking_of(said)
        async with store.reading() as tx:
            thread = await log.find_thread(tx, headers["x-conversation-id"], user_id=USER)
            every = await log.entries_between(tx, thread.id, 1, thread.entry_count)
        assert [entry.text for entry in every].count("go on") == len(seeds)
        assert sum(entry.parent_seq == 2 for entry in every) == len(seeds)

    run(store_address, work)
