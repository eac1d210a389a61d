"""Servers that are killed and started again, conversations that go on meanwhile, and what must hold of them then."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from starlette.types import Receive, Scope, Send

from longthread_testing.emulator.lean import LeanProvider

QUESTION = re.compile(rb"Question (\S+): ")
_ROLE = re.compile(rb'"role"\s*:\s*"(\w+)"')
_ENDS = ("RUN_FINISHED", "RUN_ERROR")
_PAUSE = 0.2
"""Seconds before a client tries another server."""


class Witness(LeanProvider):
    """The provider, which remembers for each question what it was asked: `call` before the query, `answer` after."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: dict[str, list[str]] = defaultdict(list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = bytearray()

        async def noted() -> Any:
            message = await receive()
            body.extend(message.get("body", b""))
            if not message.get("more_body") and (names := QUESTION.findall(body)):
                kind = "answer" if _ROLE.findall(body)[-1] == b"tool" else "call"
                self.asked[names[-1].decode()].append(kind)
            return message

        await super().__call__(scope, noted, send)


@dataclass
class Cluster:
    """Processes that serve one store. A killed one is replaced at once."""

    command: list[str]
    env: dict[str, str]
    log: Path
    """What the processes say besides."""
    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    urls: list[str] = field(default_factory=list)

    async def start(self, count: int) -> None:
        self.processes = [self._spawn() for _ in range(count)]
        self.urls = list(await asyncio.gather(*(asyncio.to_thread(self._url, each) for each in self.processes)))

    async def replace(self, number: int, how: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to a process, and start another one in its place."""
        self.processes[number].send_signal(how)
        await asyncio.to_thread(self.processes[number].wait)
        _close(self.processes[number])
        self.processes[number] = self._spawn()
        self.urls[number] = await asyncio.to_thread(self._url, self.processes[number])

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
            _close(process)

    def _spawn(self) -> subprocess.Popen[str]:
        with self.log.open("a") as said:
            return subprocess.Popen(self.command, env=self.env, stdout=subprocess.PIPE, stderr=said, text=True)

    def _url(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        url = next((line.split()[-1] for line in process.stdout if "Longthread is at" in line), None)
        if url is None:
            raise AssertionError(f"a server ended with {process.wait()} before it listened: {self.log.read_text()}")
        return url


def _close(process: subprocess.Popen[str]) -> None:
    if process.stdout is not None:
        process.stdout.close()


@asynccontextmanager
async def cluster(warmed: Path, folder: Path, store: str, provider: str, source: str) -> AsyncIterator[Cluster]:
    """Three servers over a store."""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LLM_BASE_URL": f"{provider}/v1", "LLM_RETRY_ATTEMPTS": "0"}
    env |= {"LONGTHREAD_MODEL": "openai:lean-4x200"}
    command = [str(warmed / "longthread"), "serve", "--port", "0", "--source", source, "--database", store]
    made = Cluster(command, env, folder / "servers.log")
    async with AsyncExitStack() as stack:
        stack.callback(made.close)
        await made.start(3)
        yield made


Frame = tuple[str, str]
"""The `id` and the data of one event."""


@dataclass
class Talker:
    """A client with one conversation: it asks, and reads each run to its end, through whichever server answers."""

    cluster: Cluster
    thread: str
    http: httpx.AsyncClient
    turn: int = 0
    read: dict[str, list[Frame]] = field(default_factory=dict)
    """The frames of each run, by the path of its events."""
    reconnected: int = 0
    _next: int = 0

    async def talk(self, over: asyncio.Event) -> None:
        """Ask until it is over; a run that has begun is read to its end."""
        while not over.is_set():
            question = f"Question {self.thread}.{self.turn}: which names have the largest shares?"
            events = await self._ask(question)
            await self._watch(events)
            self.turn += 1

    async def _ask(self, question: str) -> str:
        """Ask exactly once: whether a question whose answer was lost has arrived is looked up."""
        body = {"question": question, "thread_id": self.thread}
        while True:
            try:
                answer = await self.http.post(f"{self._url()}/api/chat", json=body)
                if answer.status_code == 202:
                    return str(answer.json()["events"])
            except httpx.TransportError:
                pass
            await asyncio.sleep(_PAUSE)
            if (events := await self._begun(question)) is not None:
                return events

    async def _begun(self, question: str) -> str | None:
        """The events of the run that a question began; None without one."""
        while True:
            try:
                answer = await self.http.get(f"{self._url()}/api/chat/history", params={"thread_id": self.thread})
            except httpx.TransportError:
                await asyncio.sleep(_PAUSE)
                continue
            if answer.status_code == 404:
                return None
            if answer.status_code == 200:
                last = answer.json()["run"]
                return str(last["events"]) if last and last["question"] == question else None
            await asyncio.sleep(_PAUSE)

    async def _watch(self, events: str) -> None:
        frames = self.read.setdefault(events, [])
        while not (frames and any(f'"{end}"' in frames[-1][1] for end in _ENDS)):
            headers = {"Last-Event-ID": frames[-1][0]} if frames else {}
            try:
                async with self.http.stream("GET", self._url() + events, headers=headers) as answer:
                    if answer.status_code == 200:
                        async for frame in frames_of(answer):
                            frames.append(frame)
            except httpx.TransportError:
                pass
            self.reconnected += 1
            await asyncio.sleep(_PAUSE)

    def _url(self) -> str:
        self._next += 1
        return self.cluster.urls[self._next % len(self.cluster.urls)]


async def frames_of(answer: httpx.Response) -> AsyncIterator[Frame]:
    """Yield the whole events that have an id."""
    place, data = "", ""
    async for line in answer.aiter_lines():
        if line.startswith("id: "):
            place = line[4:]
        elif line.startswith("data: "):
            data = line[6:]
        elif not line:
            if place:
                yield place, data
            place, data = "", ""


async def watched(http: httpx.AsyncClient, url: str) -> AsyncIterator[Frame]:
    """Yield a run's events; where a stream ends, the next one goes on behind the last event, as a browser's does."""
    last: dict[str, str] = {}
    while True:
        async with http.stream("GET", url, headers=last) as answer:
            async for frame in frames_of(answer):
                last = {"Last-Event-ID": frame[0]}
                yield frame
        await asyncio.sleep(_PAUSE)
