"""Clients that drop and come back anywhere, at two servers over one store: none has a gap, none has anything twice."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from tests.server.conftest import GatedModel
from tests.server.test_chat import COUNT, LOOK

from longthread.runs import events, hub
from longthread.server import stream
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

ANSWER = {"finish": " ".join(f"word{n} 第{n}。" for n in range(120)) + " [q1]\n\n"}
SCRIPT = [LOOK, [COUNT, LOOK, COUNT], ANSWER]
Told = list[tuple[str, str]]
"""Ids and data of events."""


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text comes slowly, and is told often; what is kept for slow clients is soon too little."""

    async def slowly(self: GatedModel, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        async for chunk in ScriptedChatModel._astream(self, *args, **kwargs):
            await asyncio.sleep(0.004)
            yield chunk

    monkeypatch.setattr(GatedModel, "_astream", slowly)
    monkeypatch.setattr(events, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(hub, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(hub, "KEPT_EVENTS", 3)
    monkeypatch.setattr(stream, "KEPT_EVENTS", 3)


class Client:
    """One tab: it reads a little, drops the connection, also in the middle of an event, and comes back."""

    def __init__(self, seed: int, urls: list[str], paths: dict[str, str]) -> None:
        self._random = random.Random(seed)
        self._urls = urls
        self._path, self._params = self._chosen(paths)
        self.told: Told = []
        self._last = ""
        self._ended = False

    def _chosen(self, paths: dict[str, str]) -> tuple[str, dict[str, str]]:
        """The stream of the run, or that of the user with the run."""
        run, path = self._random.choice(list(paths.items()))
        return self._random.choice([(path, {}), ("/api/events", {"run": run})])

    def follow(self) -> Client:
        """Read the run to its end."""
        for _ in range(400):
            if self._ended:
                return self
            with httpx.Client(base_url=self._random.choice(self._urls), timeout=30, trust_env=False) as client:
                self._read_some(client, self._random.choice([1, 3, 10, 200]))
        raise AssertionError(f"the run did not end: {self.told[-3:]}")

    def _read_some(self, client: httpx.Client, count: int) -> None:
        by_header = self._random.random() < 0.5
        headers = {"Last-Event-ID": self._last} if self._last and by_header else {}
        params = self._params | ({"after": self._last} if self._last and not by_header else {})
        with client.stream("GET", self._path, params=params, headers=headers) as answer:
            if answer.status_code == 204:
                self._ended = True
                return
            assert answer.status_code == 200
            for frame in _frames(answer.iter_text()):
                self._take(frame)
                count -= 1
                if not count or self._ended:
                    return

    def _take(self, frame: dict[str, str]) -> None:
        self._last = frame.get("id", self._last)
        data = frame["data"]
        if frame.get("event", "run") == "run":
            if "event" in frame:
                data = json.dumps(json.loads(data)["event"])
            self.told.append((self._last.rpartition(",")[2], json.dumps(json.loads(data), sort_keys=True)))
            self._ended = '"RUN_FINISHED"' in data or '"RUN_ERROR"' in data


def _frames(pieces: Iterator[str]) -> Iterator[dict[str, str]]:
    """The whole events of a stream, as an EventSource takes them: one that is cut off does not count."""
    text = ""
    for piece in pieces:
        text += piece
        while "\n\n" in text:
            block, text = text.split("\n\n", 1)
            fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
            if "data" in fields:
                yield fields


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_clients_that_drop_have_no_gap_and_nothing_twice(serve: Any, seed: int) -> None:
    first, second = serve(SCRIPT), serve(SCRIPT)
    asked = [running.ask("How many?") for running in (first, second)]
    paths = {f"{each['thread_id']}/{each['run_id']}": each["events"] for each in asked}
    clients = [Client(100 * seed + n, [first.url, second.url], paths) for n in range(6)]
    with ThreadPoolExecutor(len(clients)) as pool:
        done = list(pool.map(Client.follow, clients))
    whole = {}
    for path in paths.values():
        text = first.client.get(path).text
        found = _frames(iter([text]))
        whole[path] = [(each["id"], json.dumps(json.loads(each["data"]), sort_keys=True)) for each in found]
        assert "RUN_FINISHED" in whole[path][-1][1]
        assert second.client.get(path).text == text
    for client in done:
        assert client.told in whole.values()


def test_ids_that_nobody_gave_out_do_no_harm(serve: Any) -> None:
    running = serve(SCRIPT)
    asked = running.ask("How many?")
    path, run = asked["events"], f"{asked['thread_id']}/{asked['run_id']}"
    chance = random.Random(5)
    for _ in range(20):
        wrong = "".join(chance.choice("0123456789.,x-") for _ in range(chance.randrange(1, 9)))
        for url, params in ((path, {}), ("/api/events", {"run": run})):
            with running.client.stream("GET", url, params=params, headers={"Last-Event-ID": wrong}) as answer:
                assert answer.status_code in {200, 204, 404, 422}
    with running.client.stream("GET", path, headers={"Last-Event-ID": "999999"}) as answer:
        assert list(_frames(answer.iter_text())) == []
    assert "RUN_FINISHED" in running.client.get(path).text
