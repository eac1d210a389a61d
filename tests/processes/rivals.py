"""Two processes that decide about the same calls at the same moment: `python -m tests.processes.rivals`.

Reads a plan as one JSON object from its standard input, and prints one JSON object for each conversation.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.processes.forks import Ended, Tell, child, in_child
from tests.runs.approvals import define, type_that_tells
from tests.script import call, finish

from longthread.errors import LongthreadError
from longthread.runs.analyst import Analyst
from longthread.settings import Settings
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.testing import ScriptedChatModel
from longthread.tools.types import query

CHOICES = {"one": "approve", "other": "reject"}
"""What each process decides."""


@dataclass(frozen=True)
class Plan:
    """`store` is an address, `data` a folder, `rounds` how many conversations wait."""

    store: str
    data: str
    rounds: int


@dataclass(frozen=True)
class Gate:
    """Where both processes wait for each other: each says that it is there, and goes on when it is told."""

    came: tuple[int, int]
    goes: tuple[int, int]

    def open_for(self, count: int) -> None:
        """Wait until so many are there, and let them go on."""
        for _ in range(count):
            _read(self.came[0])
        os.write(self.goes[1], b"." * count)

    def wait(self) -> None:
        """Wait for the other."""
        os.write(self.came[1], b".")
        _read(self.goes[0])


def _read(pipe: int) -> None:
    if not select.select([pipe], [], [], 120)[0]:  # the other has died: both hold the pipe open
        raise RuntimeError("The other process did not come within two minutes.")
    os.read(pipe, 1)


def main() -> None:
    """Let calls wait, let two processes decide about each of them, and tell what they heard and what was made."""
    plan = Plan(**json.loads(sys.stdin.read()))
    in_child(_with_store(plan, lambda store, tell: _ask(store, plan, tell)))
    gate = Gate(os.pipe(), os.pipe())
    rivals = [child(_with_store(plan, _decider(plan, name, gate))) for name in CHOICES]
    for _ in range(plan.rounds):
        gate.open_for(len(rivals))
    ended = [rival.ended() for rival in rivals]
    for number in range(plan.rounds):
        print(json.dumps(_round(f"t{number}", ended)))


def _with_store(plan: Plan, work: Callable[[Driver, Tell], Awaitable[None]]) -> Callable[[Tell], Awaitable[None]]:
    async def opened(tell: Tell) -> None:
        async with open_store(plan.store) as store:
            await work(store, tell)

    return opened


def _analyst(store: Driver, plan: Plan, replies: list[object]) -> Analyst:
    settings = Settings.load(env_file=None, data_dir=plan.data, model="test:scripted")
    return Analyst(store, settings, models=lambda name, _: ScriptedChatModel(replies))


async def _ask(store: Driver, plan: Plan, tell: Tell) -> None:
    await define(store)
    analyst = _analyst(store, plan, [call("send_mail", to=f"t{number}") for number in range(plan.rounds)])
    for number in range(plan.rounds):
        handle = await analyst.ask("Write.", agent="clerk", thread_id=f"t{number}", user_id=analyst.settings.user)
        assert (await handle.wait()).type == "waiting"
    await analyst.close()


def _decider(plan: Plan, name: str, gate: Gate) -> Callable[[Driver, Tell], Awaitable[None]]:
    async def decide(store: Driver, tell: Tell) -> None:
        query.TYPE = type_that_tells(lambda _, args: tell({"sent": args["to"]}))
        analyst = _analyst(store, plan, [finish("Done.")] * plan.rounds)
        for number in range(plan.rounds):
            thread = f"t{number}"
            [asked] = await analyst.approvals.pending(thread, user_id=analyst.settings.user)
            await asyncio.to_thread(gate.wait)  # what goes on in the background ends meanwhile
            try:
                handle = await analyst.approvals.decide(
                    thread, {asked.call_id: {"type": CHOICES[name]}}, by=name, user_id=analyst.settings.user
                )
            except LongthreadError as error:
                tell({"refused": [thread, error.code, str(error)]})
            else:
                assert handle is not None
                tell({"heard": [thread, name, (await handle.wait()).type]})
        await analyst.close()

    return decide


def _round(thread: str, ended: list[Ended]) -> dict[str, object]:
    told = {kind: [each for process in ended for each in process.told(kind)] for kind in ("heard", "refused", "sent")}
    return {
        "heard": [rest for where, *rest in told["heard"] if where == thread],
        "refused": [rest for where, *rest in told["refused"] if where == thread],
        "sent": told["sent"].count(thread),
    }


if __name__ == "__main__":
    main()
