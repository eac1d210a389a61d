"""What is taken away while it is in use is gone within 15 seconds, on real servers with their real intervals: from
streams that are open, and from runs, also those of a server that was killed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.chaos import Cluster

from longthread.access import keys, users
from longthread.access.keys import NewKey
from longthread.model.ids import new_id
from longthread.model.run import Run
from longthread.store import run_events, runs
from longthread.store.driver import Driver
from longthread_testing.emulator.lean import LeanProvider
from longthread_testing.emulator.listener import Listener

pytestmark = pytest.mark.slow

WITHIN = 15.0
MODEL = "openai:lean-600x100"
"""It answers for a minute."""


@dataclass
class Amy:
    """A user with a key, and two servers."""

    store: Driver
    servers: Cluster
    user: users.User
    key: keys.ApiKey
    headers: dict[str, str]

    def client(self, number: int) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.servers.urls[number], headers=self.headers, timeout=60, trust_env=False)

    async def end(self, what: str) -> None:
        async with self.store.writing() as tx:
            if what == "user":
                await users.update_user(tx, self.user, status="disabled")
            else:
                await keys.revoke_key(tx, self.key.id, self.user.id)

    async def ended_run(self, thread_id: str) -> Run:
        """Return the thread's run once it has ended."""
        async with asyncio.timeout(WITHIN):
            while True:
                async with self.store.reading() as tx:
                    run = await runs.last_run(tx, thread_id)
                if run is not None and run.status != "running":
                    return run
                await asyncio.sleep(0.1)


@pytest.fixture
def provider() -> Iterator[str]:
    listener = Listener(LeanProvider())
    yield f"http://127.0.0.1:{listener.port}"
    listener.stop()


@pytest.fixture
async def amy(store: Driver, store_address: str, tmp_path: Path, warmed: Path, provider: str) -> AsyncIterator[Amy]:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LLM_BASE_URL": f"{provider}/v1"}
    env |= {"LONGTHREAD_MODEL": MODEL, "LONGTHREAD_AUTH": "login"}
    command = [str(warmed / "longthread"), "serve", "--port", "0", "--source", "demo", "--database", store_address]
    async with store.writing() as tx:
        await users.create_user(tx, "root", role="admin")
        user = await users.create_user(tx, "amy")
        key, secret = await keys.create_key(tx, user, NewKey("k", ["chat", "read"]))
    servers = Cluster(command, env, tmp_path / "servers.log")
    async with AsyncExitStack() as stack:
        stack.callback(servers.close)
        await servers.start(2)
        yield Amy(store, servers, user, key, {"X-Api-Key": secret})


async def read(client: httpx.AsyncClient, method: str, path: str, begun: asyncio.Event, **about: Any) -> float:
    """Return when a stream ended."""
    async with client.stream(method, path, **about) as answer:
        assert answer.status_code == 200
        async for _ in answer.aiter_raw():
            begun.set()
    return time.monotonic()


@pytest.mark.parametrize("taken", ["user", "key"])
async def test_open_streams_and_their_runs_end(amy: Amy, taken: str) -> None:
    sent = {"threadId": new_id(), "runId": new_id(), "tools": [], "context": [], "state": {}, "forwardedProps": {}}
    sent |= {"messages": [{"id": "m", "role": "user", "content": "Which?"}]}
    async with amy.client(0) as first, amy.client(1) as second:
        asked = (await first.post("/api/chat", json={"question": "Which names are there?"})).json()
        named = f"/api/events?run={asked['thread_id']}/{asked['run_id']}"
        streams = [
            (first, "GET", asked["events"], {}),
            (second, "GET", asked["events"], {}),
            (second, "GET", named, {}),
            (second, "POST", "/ag-ui/analyst", {"json": sent}),
        ]
        begun = [asyncio.Event() for _ in streams]
        reading = [
            asyncio.create_task(read(client, method, path, event, **about))
            for (client, method, path, about), event in zip(streams, begun, strict=True)
        ]
        await asyncio.wait_for(asyncio.gather(*(event.wait() for event in begun)), 30)
        await asyncio.sleep(1)
        assert not any(each.done() for each in reading)
        at = time.monotonic()
        await amy.end(taken)
        ends = await asyncio.wait_for(asyncio.gather(*reading), 2 * WITHIN)
        assert max(ends) - at < WITHIN, [end - at for end in ends]
        for thread_id in (asked["thread_id"], sent["threadId"]):
            assert (await amy.ended_run(thread_id)).status == "failed"
        assert time.monotonic() - at < WITHIN
        assert (await second.get("/api/conversations")).status_code == 401


@pytest.mark.parametrize("taken", ["user", "key"])
async def test_a_run_of_a_killed_server_does_not_go_on(amy: Amy, taken: str) -> None:
    async with amy.client(0) as first:
        asked = (await first.post("/api/chat", json={"question": "Which names are there?"})).json()
        begun = asyncio.Event()
        reading = asyncio.create_task(read(first, "GET", asked["events"], begun))
        await asyncio.wait_for(begun.wait(), 30)
        await asyncio.sleep(2)
        amy.servers.processes[0].kill()
        amy.servers.processes[0].wait()  # a process that nobody has waited for looks alive
        at = time.monotonic()
        await amy.end(taken)
        with pytest.raises(httpx.HTTPError):
            await reading
    run = await amy.ended_run(asked["thread_id"])
    assert run.status == "failed"
    async with amy.store.reading() as tx:
        last = await run_events.last_event(tx, run.thread_id, run.id)
        [end] = await run_events.events_after(tx, run.thread_id, run.id, last - 1)
    assert end.data["error"]["type"] == "access_ended"
    assert time.monotonic() - at < WITHIN
