"""A server on a real socket."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import PrivateAttr
from tests.server import described

from longthread.llm.models import resolve_model
from longthread.server.app import Server, create_app
from longthread.server.http import listen
from longthread.settings import Settings
from longthread.testing import ScriptedChatModel


class GatedModel(ScriptedChatModel):
    """A scripted model that waits before each reply, or behind its first piece, while that gate is shut."""

    _shut: threading.Event = PrivateAttr(default_factory=threading.Event)
    _cut: threading.Event = PrivateAttr(default_factory=threading.Event)

    @property
    def shut(self) -> threading.Event:
        """Set it to make replies wait."""
        return self._shut

    @property
    def cut(self) -> threading.Event:
        """Set it to make replies wait when their first piece is told."""
        return self._cut

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        # The test's thread and the server's share no loop, so the gate is looked at, not awaited.
        while self._shut.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        async for chunk in super()._astream(*args, **kwargs):
            yield chunk
            while self._cut.is_set():  # noqa: ASYNC110
                await asyncio.sleep(0.01)


@dataclass
class Running:
    """A server that runs, a client of it, and its model."""

    url: str
    client: httpx.Client
    server: Server
    folder: Path
    thread: threading.Thread
    model: GatedModel

    def ask(self, question: str, **options: Any) -> dict[str, str]:
        """Ask, without waiting for the answer."""
        answer = self.client.post("/api/chat", json={"question": question, **options})
        assert answer.status_code == 202, answer.text
        asked: dict[str, str] = answer.json()
        return asked

    def answer(self, question: str, **options: Any) -> dict[str, str]:
        """Ask, and wait until the run has ended."""
        asked = self.ask(question, **options)
        events = self.client.get(asked["events"])
        assert events.status_code == 200
        for line in events.text.splitlines():
            if line.startswith("data: "):
                described.check_event(json.loads(line[6:]))
        return asked

    def warm(self) -> None:
        """Wait until the server is warm: one that stops before leaves what it was starting to the garbage collector."""
        while self.client.get("/ready").json()["status"] == "warming":
            time.sleep(0.01)

    def history(self, thread_id: str, **options: Any) -> dict[str, Any]:
        """A conversation's history."""
        answer = self.client.get("/api/chat/history", params={"thread_id": thread_id, **options})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def ready(self) -> httpx.Response:
        """The answer of `/ready` once the server is warm."""
        while (answer := self.client.get("/ready")).json() == {"status": "warming"}:
            pass
        return answer

    def stop(self) -> None:
        """Stop as Ctrl-C does."""
        self.server.should_exit = True
        self.thread.join(20)
        assert not self.thread.is_alive(), "the server did not stop"


Serve = Callable[..., Running]


@pytest.fixture
def serve(tmp_path: Path, store_address: str) -> Iterator[Serve]:
    """Starts servers: `serve(model, source=…)`; `model` is a script, a function of the messages, or None for the models
    that the settings name. A `port` is one that a server had before."""
    started: list[Running] = []

    def start(script: Any, port: int = 0, **settings: Any) -> Running:
        given = {"data_dir": tmp_path / "data", "database": store_address, "source": "demo", "host": "127.0.0.1"}
        given |= {"titles": False}  # a script has no reply for what is asked behind a turn
        given |= settings
        loaded = Settings.load(env_file=None, **given)
        model = GatedModel(script or ["never asked"], loop=not callable(script))
        ready: list[str] = []
        waiting = threading.Event()

        def on_ready(url: str) -> None:
            ready.append(url)
            waiting.set()

        app = create_app(loaded, models=(lambda name, settings: model) if script else resolve_model)
        server = Server(app, listen("127.0.0.1", port), on_ready=on_ready)
        thread = threading.Thread(target=server.run, name="server", daemon=True)
        thread.start()
        assert waiting.wait(30), "the server did not start"
        hooks = {"response": [described.check]}
        client = httpx.Client(base_url=ready[0], timeout=30, trust_env=False, verify=False, event_hooks=hooks)
        running = Running(ready[0], client, server, tmp_path, thread, model)
        started.append(running)
        return running

    yield start
    for running in started:
        running.model.shut.clear()
        running.client.close()
        running.stop()
