"""A gateway that is killed amid streams: no half reply, and none lost that a client has whole."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.store.samples import everything

from longthread.store import gateway as calls
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.testing import ProviderEmulator, ProviderRules

ROUNDS, CLIENTS = 12, 6
USER = "default"


class Process:
    """`longthread gateway` as a process."""

    def __init__(self, address: str, provider: ProviderEmulator, folder: Path) -> None:
        program = Path(sys.executable).with_name("longthread")
        own = ["--database", address, "--port", "0", "--anthropic-url", provider.anthropic_url]
        self._command = [str(program), "gateway", *own]
        self._folder = folder
        self.url = ""

    async def start(self) -> None:
        given = os.environ | {"LONGTHREAD_DATA_DIR": str(self._folder)}
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(*self._command, stdout=pipe, env=given)
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if b"gateway is at" in line:
                self.url = line.split()[-1].decode()
                return
        raise AssertionError("The gateway did not start.")

    async def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        await self._process.wait()


async def streamed(
    url: str, messages: list[dict[str, Any]], on_piece: Callable[[], None] = lambda: None
) -> list[dict[str, Any]] | None:
    """Ask, and return the reply's blocks if its last event came."""
    body = {"model": "claude-opus-5-5", "max_tokens": 500, "stream": True, "messages": messages}
    got = b""
    try:
        async with (
            httpx.AsyncClient(timeout=30) as client,
            client.stream("POST", f"{url}/v1/messages", json=body | {"thinking": {"type": "adaptive"}}) as answer,
        ):
            async for piece in answer.aiter_raw():
                got += piece
                on_piece()
    except httpx.HTTPError:
        return None
    if b"message_stop" not in got:
        return None
    text = "".join(
        event["delta"]["text"]
        for line in got.splitlines()
        if line.startswith(b"data:") and (event := json.loads(line[5:])).get("delta", {}).get("type") == "text_delta"
    )
    return [{"type": "text", "text": text}]


class Countdown:
    """`over` is set after so many pieces of streams."""

    def __init__(self, pieces: int) -> None:
        self.over = asyncio.Event()
        self._left = pieces

    def count(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self.over.set()


@pytest.mark.slow
async def test_a_killed_gateway_keeps_what_it_acknowledged(store_address: str, tmp_path: Path) -> None:
    dice = random.Random(4711)  # no secret
    rules = ProviderRules(signatures=True, binding=True)
    talks: list[list[dict[str, Any]]] = [[] for _ in range(CLIENTS)]
    with ProviderEmulator(None, rules=rules, chunk_bytes=20) as provider:
        process = Process(store_address, provider, tmp_path)
        for number in range(ROUNDS):
            await process.start()

            pieces = Countdown(dice.randint(1, 400))

            async def talk(
                said: list[dict[str, Any]], name: str, url: str = process.url, pieces: Countdown = pieces
            ) -> None:
                while True:
                    asked = [*said, {"role": "user", "content": f"{name} {len(said)}"}]
                    blocks = await streamed(url, asked, pieces.count)
                    if blocks is None:
                        return
                    said[:] = [*asked, {"role": "assistant", "content": blocks}]

            talking = asyncio.gather(*(talk(said, f"client {n} round {number}") for n, said in enumerate(talks)))
            await pieces.over.wait()
            await process.kill()
            await talking
        assert sum(len(said) for said in talks) > CLIENTS
        await process.start()
        for said in talks:  # each goes on, and all of its thinking comes back
            assert await streamed(process.url, [*said, {"role": "user", "content": "and now?"}]) is not None
            signed = [block for each in provider.requests[-1].body["messages"] for block in _blocks(each)]
            assert sum(block["type"] == "thinking" for block in signed) == len(said) // 2
        await process.kill()
    async with open_store(store_address) as store:
        await _is_whole(store)


async def _is_whole(store: Driver) -> None:
    """Each call's reply, each node and each branch has all of its entries."""
    async with store.reading() as tx:
        rows = await everything(tx, derived=True)
        for thread in rows["threads"]:
            there = {row["seq"] for row in rows["entries"] if row["thread_id"] == thread["id"]}
            assert there == set(range(1, thread["entry_count"] + 1))
            nodes = {row["seq"] for row in rows["gateway_nodes"] if row["thread"] == thread["id"]}
            assert nodes == there
            for call in (await calls.calls_until(tx, thread["id"], 10**6)).values():
                replies = {call.reply_seq, call.reply_end} - {None}
                assert replies <= there
            await log.branch(tx, thread["id"], thread["tip"], limit=10**6)


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
