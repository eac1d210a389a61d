"""A process that executes runs when it is told to: `python -m tests.processes.owning PLAN`, the plan as JSON.

It takes one command a line and answers each with a line of JSON. It says that it is on the plan's `host`; a model call
of it says `{"asked": …}` and waits for the file `gate` to be there.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage
from tests.script import COUNT, finish

from longthread.errors import LongthreadError
from longthread.runs import worker
from longthread.runs.analyst import Analyst
from longthread.settings import Settings
from longthread.store import listing
from longthread.testing import ScriptedChatModel

ANSWER = "3 customers [q1]."


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def reply(messages: list[BaseMessage]) -> Any:
    """A query, then the answer."""
    return finish(ANSWER) if isinstance(messages[-1], ToolMessage) else COUNT


class Waiting(ScriptedChatModel):
    """Says that it was asked, and answers when the gate is open."""

    def __init__(self, gate: str) -> None:
        super().__init__(reply, metadata={"gate": gate})

    async def _astream(self, *args: Any, **kwargs: Any) -> Any:
        say(asked=len(args[0]))
        while not await asyncio.to_thread(Path(str((self.metadata or {})["gate"])).exists):  # noqa: ASYNC110 - a file rings no notifier
            await asyncio.sleep(0.02)
        async for chunk in super()._astream(*args, **kwargs):
            yield chunk


async def obey(analyst: Analyst, source: str, command: str) -> None:
    """Carry out a command and say what came of it."""
    try:
        if command == "impatient":  # it takes others for dead as soon as they are silent between two looks
            worker.SILENT_SECONDS = 0.0
            say(impatient=True)
            return
        asking = (
            analyst.ask("How many?", thread_id="t", source=source, user_id=analyst.settings.user)
            if command == "ask"
            else analyst.runs.resume("t", user_id=analyst.settings.user)
        )
        final = await (await asking).wait()
        say(ended=final.type, answer=final.data.get("answer"))
    except LongthreadError as error:
        say(error=error.code)


async def main(plan: Any) -> None:
    socket.gethostname = lambda: plan["host"]
    settings = Settings.load(
        env_file=None, data_dir=plan["data"], database=plan["store"], source=plan["source"], model="test:scripted"
    )
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with Analyst.open(settings, models=lambda name, _: Waiting(plan["gate"])) as analyst:
        async with analyst.store.reading() as tx:
            assert await listing.list_threads(tx, user_id="default") is not None
        say(ready=plan["host"], pid=os.getpid())
        while line := (await lines.readline()).decode().strip():
            await obey(analyst, plan["source"], line)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
