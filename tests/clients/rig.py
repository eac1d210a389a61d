"""A provider that binds thinking to its conversation, and the gateway before it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tests.clients.obedient import obedient

from longthread.settings import Settings
from longthread.store import listing, log
from longthread.store.open import open_store
from longthread.testing import ProviderEmulator
from longthread_testing.emulator import ProviderRules

RULES = ProviderRules(signatures=True, binding=True, reasoning_content="deepseek")
_MOST = 10_000


class Refusals:
    """Notes the body of each error that a provider answers with."""

    def __init__(self, app: ASGIApp, noted: list[str]) -> None:
        self._app, self._noted = app, noted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = False

        async def noting(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start":
                refused = message["status"] >= 400
            elif refused and message.get("body"):
                self._noted.append(message["body"].decode())
            await send(message)

        await self._app(scope, receive, noting)


@dataclass(frozen=True)
class Provider:
    """A provider, and the errors that it answered with."""

    url: str
    refusals: list[str] = field(default_factory=list)


@contextmanager
def provider(rules: ProviderRules = RULES) -> Iterator[Provider]:
    noted: list[str] = []
    emulator = ProviderEmulator(obedient, rules=rules)
    emulator.app.add_middleware(Refusals, noted=noted)
    with emulator:
        yield Provider(emulator.anthropic_url, noted)


@dataclass(frozen=True)
class Conversation:
    """A thread of the store: the texts of its active branch in order, and those of all its branches."""

    id: str
    parent: str | None
    branch: Sequence[str]
    texts: Sequence[str]

    def holds(self, said: Sequence[str]) -> bool:
        """Whether the active branch has these texts, in order."""
        texts = iter(self.branch)
        return all(any(each in text for text in texts) for each in said)


@dataclass(frozen=True)
class Gateway:
    """`longthread gateway`, and the store that it writes."""

    url: str
    database: Path

    def conversations(self) -> list[Conversation]:
        async def read() -> list[Conversation]:
            async with open_store(str(self.database)) as store, store.reading() as tx:
                found = await listing.list_threads(tx, user_id=Settings.load().user, limit=_MOST, below=True)
                return [
                    Conversation(
                        each.id,
                        each.parent_id,
                        [entry.text for entry in await log.branch(tx, each.id, each.tip, limit=_MOST)],
                        [entry.text for entry in await log.entries_between(tx, each.id, 1, _MOST)],
                    )
                    for each in found
                ]

        return asyncio.run(read())

    def dropped(self) -> int:
        """How many hidden parts the gateway took out of requests."""
        with closing(sqlite3.connect(self.database)) as connection:
            [count] = connection.execute("SELECT coalesce(sum(dropped), 0) FROM gateway_calls").fetchone()
        return int(count)


@contextmanager
def gateway(folder: Path, upstream: str) -> Iterator[Gateway]:
    database = folder / "gateway.db"
    options: Sequence[str] = [f"--anthropic-url={upstream}", f"--openai-url={upstream}/v1", "--port=0"]
    program = Path(sys.executable).with_name("longthread")
    with subprocess.Popen(
        [program, "gateway", *options, f"--database={database}"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as process:
        try:
            assert process.stdout
            ready = (line.split()[-1] for line in process.stdout if line.startswith("The gateway is at"))
            url = next(ready, "")
            assert url, "the gateway did not start"
            yield Gateway(url, database)
        finally:
            process.terminate()
