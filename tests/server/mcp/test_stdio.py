"""Standard streams: what is written there, and how a server of them ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import GatedModel
from tests.server.mcp.conftest import Open

from longthread.runs.analyst import Analyst
from longthread.server.mcp import stdio
from longthread.server.mcp.serve import UserTools, offers, protocol_server
from longthread.server.mcp.thread_tools import Transcripts
from longthread.store import listing, runs

pytestmark = pytest.mark.one_backend

ABOUT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
ROOT = Path(__file__).parents[3]


class Lines:
    """A client by hand, at the other ends of the server's streams."""

    def __init__(self, writing: int, reading: int) -> None:
        self.writing = writing
        self._file = os.fdopen(reading, "rb")

    def send(self, method: str, id_: int | None = None, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": id_} if id_ is not None else {})
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, data: bytes) -> None:
        os.write(self.writing, data)

    async def read(self) -> Any:
        async with asyncio.timeout(120):
            return json.loads(await asyncio.to_thread(self._file.readline))

    async def begin(self) -> None:
        self.send("initialize", 0, **ABOUT)
        assert (await self.read())["result"]["serverInfo"]["name"] == "longthread"
        self.send("notifications/initialized")

    def close(self) -> None:
        if self.writing >= 0:
            os.close(self.writing)
        self.writing = -1

    def leave(self) -> None:
        self.close()
        self._file.close()


@asynccontextmanager
async def served(analyst: Analyst, most: int = 1_000_000) -> AsyncIterator[tuple[Lines, asyncio.Task[None]]]:
    user = analyst.settings.user
    own = UserTools(offers(analyst, user), Transcripts(analyst.store, user))
    server = protocol_server(lambda context: own)
    (theirs, writing), (reading, ours) = os.pipe(), os.pipe()
    task = asyncio.create_task(stdio.serve(server, theirs, ours, most=most))
    client = Lines(writing, reading)
    try:
        yield client, task
    finally:
        client.leave()
        async with asyncio.timeout(120):
            await task
        os.close(ours)


async def test_what_is_no_message_is_passed_over(open_analyst: Open) -> None:
    async with served(await open_analyst(), most=5_000) as (client, _):
        await client.begin()
        await asyncio.to_thread(
            client.write, b"hello\n\n{}\n\xff\xfe\n" + b"x" * 200_000 + b"\n"
        )  # more than a pipe holds
        client.send("tools/call", 1, name="search_threads", arguments={"query": "火箭" * 10})
        assert (await client.read())["result"]["structuredContent"] == {"threads": []}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", ["input", "output", "signal"])
async def test_when_its_client_goes_the_runs_are_stopped_and_kept(open_analyst: Open, how: str) -> None:
    model = GatedModel([{"finish": "Done."}])
    model.shut.set()
    analyst = await open_analyst(model)
    async with served(analyst) as (client, task):
        await client.begin()
        client.send("tools/call", 1, name="ask", arguments={"question": "How many?"})
        while not analyst.runs._running:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
        if how == "input":
            client.close()
        elif how == "output":
            client._file.close()
            client.send("ping", 2)
        else:
            signal.raise_signal(signal.SIGTERM)
        async with asyncio.timeout(120):
            await asyncio.wait({task})
    async with analyst.store.reading() as tx:
        [thread] = await listing.list_threads(tx, user_id="default")
        run = await runs.last_run(tx, thread.id)
    assert run is not None
    assert (run.status, run.outcome["reason"]) == ("paused", "stopped")
    model.shut.clear()
    handle = await analyst.runs.resume(thread.id, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"


async def test_a_call_is_cancelled_while_it_begins(open_analyst: Open) -> None:
    """At whatever moment: the run never stays as if somebody executed it."""
    model = GatedModel([{"finish": "Done."}], loop=True)
    model.shut.set()
    analyst = await open_analyst(model)
    async with served(analyst) as (client, _):
        await client.begin()
        for number in range(1, 13):
            client.send("tools/call", number, name="ask", arguments={"question": f"How many? {number}"})
            await asyncio.sleep(number * 0.004)
            client.send("notifications/cancelled", requestId=number)
        client.send("ping", 99)
        while (await client.read()).get("id") != 99:
            continue
        while analyst.runs._running:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
    async with analyst.store.reading() as tx:
        threads = await listing.list_threads(tx, user_id="default")
        last = [await runs.last_run(tx, thread.id) for thread in threads]
    assert {run.status for run in last if run} <= {"paused"}


async def test_the_command_speaks_the_protocol_and_nothing_else(
    tmp_path: Path, backend: str, store_address: str, warmed: Path
) -> None:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "LONGTHREAD_DATA_DIR": str(tmp_path / "data"),
        "LONGTHREAD_DATABASE_URL": store_address,
    }
    python = sys.executable if backend == "sqlite" else str(warmed / "python")
    code = "from longthread.cli.start import main; main()"
    process = await asyncio.create_subprocess_exec(
        *[python, "-c", code, "mcp", "--source", "demo", "--model", "demo", "--user", "ada"],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
        cwd=tmp_path,
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None

    async def ask(message: dict[str, Any]) -> Any:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
        while "id" in message:
            line = json.loads(await process.stdout.readline())  # each line is a message
            assert line["jsonrpc"] == "2.0"
            if line.get("id") == message["id"]:
                return line["result"]
        return None

    async with asyncio.timeout(120):
        await ask({"id": 1, "method": "initialize", "params": ABOUT})
        await ask({"method": "notifications/initialized"})
        arguments = {"name": "ask", "arguments": {"question": "运载火箭有多少？"}}
        result = await ask({"id": 2, "method": "tools/call", "params": arguments})
        assert result["structuredContent"]["status"] == "finished"
        process.send_signal(signal.SIGTERM)
        out, err = await process.communicate()
    assert (process.returncode, out) == (0, b"")
    assert b"Traceback" not in err
