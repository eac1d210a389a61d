"""Processes that are killed at the boundaries of a run's writes, and others that go on.

`python -m tests.processes.dying` reads a plan as one JSON object from its standard input and prints one JSON object
for each thread that it killed a process on. Everything is imported once; each process is forked from this one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.processes import dying_analyst, dying_approval, dying_delegates, dying_graph
from tests.processes.evidence import after_the_crash
from tests.processes.forks import Ended, Tell, in_child

from longthread.store.open import open_store
from longthread.testing.failpoints import Failpoints, KillAt, Write

SCENARIOS = {
    "analyst": dying_analyst,
    "graph": dying_graph,
    "approval": dying_approval,
    "delegates": dying_delegates,
}


@dataclass(frozen=True)
class Plan:
    """What to kill.

    `store` is an address, `data` a folder, `source` a database to ask. `every` n-th boundary of a run is killed at,
    from number `first` on, and of the process that goes on, every n-th of `again` (0: it lives); a third one then
    goes on.
    """

    scenario: str
    store: str
    data: str
    source: str
    first: int = 1
    every: int = 1
    again: int = 0

    def numbers(self, boundaries: int) -> Iterator[tuple[int, int]]:
        """Where each first and second process is killed; 0: not at all."""
        for number in range(self.first, boundaries + 1, self.every):
            yield from (
                ((number, again) for again in range(self.again, boundaries - number, self.again))
                if (self.again)
                else [(number, 0)]
            )


def _die(plan: Plan, thread: str, number: int, *, resumes: bool = False) -> Ended:
    """One process that works on a thread and is killed at a boundary, or comes to its end."""
    scenario = SCENARIOS[plan.scenario]

    async def work(tell: Tell) -> None:
        def teller(kind: str) -> Any:
            return lambda writes: tell({kind: [_plain(write) for write in writes]})

        async with open_store(plan.store) as driver:
            kill = KillAt(number)
            store = Failpoints(driver, kill, teller("intended"), teller("written"))
            act = scenario.resume if resumes else scenario.begin
            await act(store, thread, plan, tell)
            tell({"boundaries": kill.reached})

    return in_child(work)


def _plain(write: Write) -> list[Any]:
    return [write.query, write.values]


def _go_on(plan: Plan, thread: str, dead: list[Ended]) -> Ended:
    """Another process: looks at what the dead ones left, goes on, and looks at how it ended."""
    scenario = SCENARIOS[plan.scenario]

    async def work(tell: Tell) -> None:
        async with open_store(plan.store) as store:
            for go_on in (scenario.resume, scenario.check):
                await after_the_crash(store, thread, dead, tell, resumed=go_on is scenario.check)
                await scenario.acknowledged(store, thread, dead, tell)
                await go_on(store, thread, plan, tell)

    return in_child(work)


def _killed(plan: Plan, number: int, again: int) -> dict[str, Any]:
    thread = f"{plan.scenario}-{plan.first}-{plan.every}-{number}-{again}"
    dead = [_die(plan, thread, number)]
    if again:
        dead.append(_die(plan, thread, again, resumes=True))
    last = _go_on(plan, thread, dead)
    problems = [*last.told("problem"), *SCENARIOS[plan.scenario].repeated([*dead, last])]
    return {"thread": thread, "signals": [each.signal for each in dead], "problems": problems}


def main() -> None:
    """Kill as the plan says."""
    plan = Plan(**json.loads(sys.stdin.read()))
    whole = _die(plan, f"{plan.scenario}-{plan.first}-{plan.every}-whole", 0)
    [boundaries] = whole.told("boundaries")
    for number, again in plan.numbers(boundaries):
        print(json.dumps(_killed(plan, number, again)), flush=True)
    last = _go_on(plan, f"{plan.scenario}-{plan.first}-{plan.every}-whole", [whole])
    print(json.dumps({"thread": "whole", "signals": [], "problems": last.told("problem")}))


if __name__ == "__main__":
    main()
