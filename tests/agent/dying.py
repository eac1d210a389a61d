"""Processes that ask one question and kill themselves at a write: `python -m tests.agent.dying DATA SOURCE WHEN`.

For n = 1, 2, … a forked process works in the folder DATA/n and dies at its n-th write, `before` or `after` the commit.
Prints how many died: the next one had no n-th write and finished.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from tests.agent.script import COUNT, call, finish

from longthread.agent.analyst import Analyst
from longthread.settings import Settings
from longthread.store.sqlite import SqliteDriver
from longthread.testing import ScriptedChatModel

ANSWER = "3 customers [q1], 2 countries [q2]."
_PLAN: list[Any] = [
    call("list_tables"),
    [COUNT, call("run_sql", sql="SELECT COUNT(DISTINCT country) AS n FROM customers")],
    finish(ANSWER),
]


def reply(messages: list[BaseMessage]) -> Any:
    """What comes next follows from the results that there are: the same in every process."""
    last = max(n for n, message in enumerate(messages) if isinstance(message, HumanMessage))
    results = sum(isinstance(message, ToolMessage) for message in messages[last:])
    return _PLAN[{0: 0, 1: 1, 3: 2}[results]]


def model() -> ScriptedChatModel:
    """The model of both processes."""
    return ScriptedChatModel(reply)


def _die_at(number: int, when: str) -> None:
    original = SqliteDriver.writing
    count = 0

    @asynccontextmanager
    async def writing(self: SqliteDriver) -> AsyncIterator[Any]:
        nonlocal count
        count += 1
        mine = count == number
        async with original(self) as tx:
            yield tx
            if mine and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
        if mine:
            os.kill(os.getpid(), signal.SIGKILL)

    SqliteDriver.writing = writing  # type: ignore[method-assign, assignment]


async def _ask(data: str, source: str) -> None:
    settings = Settings.load(env_file=None, data_dir=data, model="test:scripted")
    async with Analyst.open(settings, models=lambda name, _: model()) as analyst:
        await (await analyst.ask("How many customers and countries?", thread_id="t", source=source)).wait()


def _dies(data: str, source: str, number: int, when: str) -> bool:
    pid = os.fork()
    if pid == 0:
        _die_at(number, when)
        asyncio.run(_ask(f"{data}/{number}", source))
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    dead = 0
    while _dies(sys.argv[1], sys.argv[2], dead + 1, sys.argv[3]):
        dead += 1
    print(dead)
