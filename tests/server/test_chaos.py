"""Kill any process at any time, and no conversation notices."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.conftest import new_server
from tests.server.chaos import Cluster, Talker, Witness, cluster, frames_of, watched
from tests.store.test_faults import pg_ctl

from longthread.settings import DEFAULT_USER
from longthread.store import log, runs
from longthread.store.open import open_store
from longthread_testing.emulator.lean_turns import words
from longthread_testing.emulator.listener import Listener

pytestmark = [pytest.mark.slow]

CONVERSATIONS = 50
SECONDS = 60
ANSWER = "".join(words(4))


@pytest.fixture
def witness() -> Iterator[tuple[Witness, str]]:
    provider = Witness()
    listener = Listener(provider)
    yield provider, f"http://127.0.0.1:{listener.port}"
    listener.stop()


@pytest.fixture
def postgres(backend: str, tmp_path: Path) -> Iterator[Any]:
    """A PostgreSQL server that this test may restart; None on the other backend."""
    if backend == "sqlite":
        yield None
        return
    server = new_server(tmp_path / "postgres")
    yield server
    pg_ctl(server, "stop", "immediate")
    server.cleanup()


@pytest.fixture
def address(backend: str, postgres: Any, tmp_path: Path) -> str:
    return str(tmp_path / "conversations.db") if postgres is None else str(postgres.get_uri())


@pytest.fixture
async def servers(
    address: str, tmp_path: Path, warmed: Path, shares: str, witness: tuple[Witness, str]
) -> AsyncIterator[Cluster]:
    async with cluster(warmed, tmp_path, address, witness[1], shares) as made:
        yield made


@pytest.fixture
def shares(tmp_path: Path) -> str:
    """The database that the lean provider's query asks."""
    path = tmp_path / "source.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t AS SELECT 'one' AS name, 1.0 AS share UNION ALL SELECT 'two', 2.0")
    return str(path)


async def test_no_conversation_notices_what_is_killed(
    servers: Cluster, witness: tuple[Witness, str], postgres: Any, address: str
) -> None:
    over = asyncio.Event()
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=httpx.Timeout(60, connect=5), limits=limits, trust_env=False) as http:
        talkers = [Talker(servers, f"chaos-{number}", http) for number in range(CONVERSATIONS)]
        talking = [asyncio.create_task(each.talk(over)) for each in talkers]
        await _kill_for_a_minute(servers, postgres)
        over.set()
        async with asyncio.timeout(120):
            await asyncio.gather(*talking)
        await _every_client_read_all(servers, talkers, http)
    assert sum(each.reconnected for each in talkers) > CONVERSATIONS
    await _all_is_stored_once(address, talkers)
    # The second call of a turn carries the reply to the first, which is finished then.
    behind = {name: itertools.dropwhile("call".__eq__, kinds) for name, kinds in witness[0].asked.items()}
    repeated = {name for name, kinds in behind.items() if "call" in kinds}
    assert repeated == set()


async def _kill_for_a_minute(servers: Cluster, postgres: Any) -> None:
    """Kill a server every two seconds, or as soon as the last one is replaced; restart PostgreSQL in between."""
    until = time.monotonic() + SECONDS
    victims = random.Random(26)
    for number in itertools.count(1):
        if time.monotonic() > until:
            return
        if number == 10 and postgres is not None:
            await asyncio.to_thread(pg_ctl, postgres, "restart", "fast")
        await asyncio.gather(asyncio.sleep(2), servers.replace(victims.randrange(len(servers.urls))))


async def _every_client_read_all(servers: Cluster, talkers: list[Talker], http: httpx.AsyncClient) -> None:
    """Each client has the frames that a new one gets, in the same order."""
    for talker in talkers:
        for events, frames in talker.read.items():
            async with http.stream("GET", servers.urls[0] + events) as answer:
                whole = [frame async for frame in frames_of(answer)]
            assert frames == whole, f"{events}:\n{frames}\n{whole}"


async def _all_is_stored_once(address: str, talkers: list[Talker]) -> None:
    """Each run has ended; of one that finished, the log has question, call, result and answer, once each."""
    ends: list[str] = []
    async with open_store(address) as store, store.reading() as tx:
        for talker in talkers:
            thread = await log.find_thread(tx, talker.thread, user_id=DEFAULT_USER)
            found = await runs.list_runs(tx, thread.id, limit=10_000)
            ends += [run.status for run in found]
            assert len(found) == talker.turn
            _, count = await log.position(tx, thread.id)
            entries = await log.entries_between(tx, thread.id, 1, count + 1)
            for run in found:
                own = [entry for entry in entries if entry.run_id == run.id]
                # A run behind one that crashed first closes the calls that it left open.
                own = [*itertools.dropwhile(lambda entry: entry.role == "tool", own)]
                if run.status == "finished":
                    assert [entry.role for entry in own] == ["user", "assistant", "tool", "assistant"], talker.thread
                    assert own[-1].text == ANSWER
                else:
                    assert run.outcome["error"]["type"] == "crashed", run.outcome
    # How many are in the same step for three deaths of their processes depends on the machine.
    assert ends.count("finished") > 0.9 * len(ends), Counter(ends)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_the_next_event_comes_through_another_process(servers: Cluster, how: signal.Signals) -> None:
    """Within 12 seconds of a kill, and of the drain's end."""
    async with httpx.AsyncClient(timeout=httpx.Timeout(60, connect=5), trust_env=False) as http:
        body = {"question": "Question next.0: which names?", "model": "openai:lean-60x1000"}
        asked = (await http.post(f"{servers.urls[0]}/api/chat", json=body)).json()
        frames = aiter(watched(http, servers.urls[1] + asked["events"]))
        while "word1" not in (await anext(frames))[1]:
            pass
        servers.processes[0].send_signal(how)
        await asyncio.to_thread(servers.processes[0].wait)
        async with asyncio.timeout(12):
            while (kind := json.loads((await anext(frames))[1])["type"]) == "TEXT_MESSAGE_CONTENT":
                pass
        assert kind not in ("RUN_FINISHED", "RUN_ERROR")


async def test_a_queue_goes_on_when_the_process_that_executes_is_killed(servers: Cluster) -> None:
    async with httpx.AsyncClient(timeout=httpx.Timeout(60, connect=5), trust_env=False) as http:
        body = {"question": "Question killed.0: which names?", "model": "openai:lean-10x500"}
        asked = (await http.post(f"{servers.urls[0]}/api/chat", json=body)).json()
        frames = aiter(watched(http, servers.urls[1] + asked["events"]))
        while "word1" not in (await anext(frames))[1]:
            pass
        queued = []
        for number in (1, 2):
            body = {"question": f"Question killed.{number}: and then?", "thread_id": asked["thread_id"]}
            answer = await http.post(f"{servers.urls[number]}/api/chat", json={**body, "when_busy": "enqueue"})
            queued.append(answer.json())
        assert [each["position"] for each in queued] == [1, 2]
        servers.processes[0].kill()
        async with asyncio.timeout(60):
            for each in queued:
                path, last = f"{servers.urls[2]}{each['events']}", ""
                async for _, last in watched(http, path):
                    if json.loads(last)["type"] in ("RUN_FINISHED", "RUN_ERROR"):
                        break
                assert json.loads(last)["type"] == "RUN_FINISHED"
        history = (await http.get(f"{servers.urls[1]}/api/chat/history?thread_id={asked['thread_id']}")).json()
    said = [message["content"][:18] for message in history["messages"] if message["role"] == "user"]
    assert said == [f"Question killed.{number}:" for number in range(3)]
