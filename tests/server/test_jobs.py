"""Two servers over one store share their background work, whatever dies."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send
from tests.server.chaos import Cluster

from longthread.store import summaries
from longthread.store.driver import Driver
from longthread.store.queries import Sql
from longthread_testing.emulator.lean import TEXT, LeanProvider
from longthread_testing.emulator.listener import Listener

WINDOW = 4


class Summarises(LeanProvider):
    """The provider. The first summary that it is asked for is never told."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = self.told = 0
        self.begun = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parts = []
        while True:
            message = await receive()
            parts.append(message.get("body", b""))
            if not message.get("more_body"):
                break
        body = b"".join(parts)
        if b"memory of a long conversation" in body:
            self.asked += 1
            self.begun.set()
            if self.asked == 1:
                while (await receive())["type"] != "http.disconnect":
                    pass
                return
            self.told += 1

        async def again() -> Message:
            return {"type": "http.request", "body": body}

        await super().__call__(scope, again, send)


@pytest.fixture
def provider() -> Iterator[tuple[Summarises, str]]:
    made = Summarises()
    listener = Listener(made)
    yield made, f"http://127.0.0.1:{listener.port}"
    listener.stop()


@pytest.fixture
async def servers(
    store: Driver, store_address: str, tmp_path: Path, warmed: Path, provider: tuple[Summarises, str]
) -> AsyncIterator[Cluster]:
    """Two servers over a store."""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LLM_BASE_URL": f"{provider[1]}/v1"}
    env |= {"LONGTHREAD_MODEL": "openai:lean", "MEMORY_MAX_MESSAGES_PER_THREAD": str(WINDOW)}
    command = [str(warmed / "longthread"), "serve", "--port", "0", "--source", "demo", "--database", store_address]
    made = Cluster(command, env, tmp_path / "servers.log")
    async with AsyncExitStack() as stack:
        stack.callback(made.close)
        await made.start(2)
        yield made


async def turn(url: str) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as http:
        answer = await http.post("/api/chat", json={"question": "Which names are there?", "thread_id": "t"})
        assert answer.status_code == 202, answer.text
        async with http.stream("GET", answer.json()["events"]) as events:
            async for _ in events.aiter_lines():
                pass


async def asked_by_a_command(servers: Cluster) -> None:
    """Ask on the same thread, by the command line: it does what is due behind its turn before it ends."""
    tool, *_, database = servers.command
    command = [tool, "ask", "Which names are there?", "--thread", "t", "--source", "demo", "--database", database]
    process = await asyncio.create_subprocess_exec(
        *command, env=servers.env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()


async def rows(store: Driver) -> list[Any]:
    async with store.reading() as tx:
        return list(await tx.fetch(Sql("SELECT kind, subject, owner, failures FROM background_jobs")))


async def until(fact: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await fact():  # noqa: ASYNC110 - a row rings no event
            await asyncio.sleep(0.02)


async def test_a_summary_of_a_server_that_is_killed_is_written_by_the_other_and_paid_for_once(
    servers: Cluster, store: Driver, provider: tuple[Summarises, str]
) -> None:
    witness, (first, second) = provider[0], servers.urls
    for _ in range(4):
        if not witness.begun.is_set():
            await turn(first)
    await asyncio.to_thread(witness.begun.wait, 60)
    await turn(second)
    await asked_by_a_command(servers)
    assert [(row["kind"], row["subject"]) for row in await rows(store)] == [("summary", "t")]
    assert witness.asked == 1, "the second server and the command leave it to the first"

    servers.processes[0].kill()

    async def is_done() -> bool:
        return not await rows(store)

    await until(is_done)
    assert (witness.asked, witness.told) == (2, 1)
    async with store.reading() as tx:
        kept = await summaries.find(tx, "t")
    assert kept is not None
    assert (kept.summary.startswith(TEXT), kept.unwritten) == (True, False)
    assert kept.model is not None
