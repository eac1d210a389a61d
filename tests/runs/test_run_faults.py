"""A store that fails at any boundary of a run's writes: the run ends with an error, and the same process goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.processes import dying_analyst
from tests.processes.evidence import whole

from longthread.errors import LongthreadError, NothingToResume, StoreFull, ThreadNotFound
from longthread.runs import start
from longthread.runs.analyst import Analyst
from longthread.store import log, runs
from longthread.store.driver import Driver
from longthread.testing.failpoints import Failpoints

pytestmark = pytest.mark.one_backend


@dataclass
class Failing:
    """Raises at the boundary of a number, once or from then on."""

    number: int
    for_good: bool
    reached: int = 0

    def __call__(self, boundary: str) -> None:
        self.reached += 1
        # What comes after a commit cannot fail: it has been written.
        if boundary == "after COMMIT" or not self.number:
            return
        if self.reached == self.number or (self.for_good and self.reached > self.number):
            raise StoreFull(reason="the disk is full.")


@pytest.fixture(autouse=True)
def _no_waiting_for_leases(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that could not end its run may go on with it as soon as it is taken for dead."""
    monkeypatch.setattr(start, "may_be_alive", lambda owner: False)
    original = dying_analyst.run_setup.analysis_tools
    yield
    dying_analyst.run_setup.analysis_tools = original


async def _answered(analyst: Analyst, thread_id: str, plan: Any) -> str:
    """What a user does: goes on while there is something to go on with, and asks again where nothing was kept."""
    for _ in range(3):
        try:
            handle = await analyst.runs.resume(thread_id, user_id=analyst.settings.user)
        except ThreadNotFound:
            handle = await analyst.ask(
                dying_analyst.QUESTION, thread_id=thread_id, source=plan.source, user_id=analyst.settings.user
            )
        except NothingToResume:
            break
        if (await handle.wait()).type == "finished":
            break
    async with analyst.store.reading() as tx:
        run = await runs.last_run(tx, thread_id)
    return str(run and run.outcome.get("answer"))


async def _count(store: Driver, plan: Any) -> int:
    failing = Failing(0, for_good=False)
    await dying_analyst.begin(Failpoints(store, failing), "whole", plan, lambda _: None)
    return failing.reached


@pytest.mark.sampled(2)
@pytest.mark.parametrize("every", [61, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("for_good", [False, True])
async def test_a_run_goes_on_after_the_store_failed_anywhere(
    store: Driver, tmp_path: Path, shop: str, for_good: bool, every: int
) -> None:
    plan = SimpleNamespace(data=str(tmp_path), source=shop)
    boundaries = await _count(store, plan)
    problems: list[Any] = []
    for number in range(every // (3 if for_good else 1), boundaries, every):
        thread_id = f"t{number}"
        failing = Failing(number, for_good)

        def tell(report: dict[str, Any], number: int = number) -> None:
            if "problem" in report:
                problems.append((number, report["problem"]))

        analyst = dying_analyst.analyst_on(Failpoints(store, failing), plan, tell)
        with suppress(LongthreadError):
            handle = await analyst.ask(
                dying_analyst.QUESTION, thread_id=thread_id, source=shop, user_id=analyst.settings.user
            )
            with suppress(LongthreadError):
                await handle.wait()
            await asyncio.wait({handle.task})
        failing.number = 0
        async with store.reading() as tx:
            with suppress(ThreadNotFound):
                await whole(tx, thread_id, tell, gaps=True)
        answer = await _answered(analyst, thread_id, plan)
        if answer != dying_analyst.ANSWER:
            problems.append((number, answer))
        async with store.reading() as tx:
            await whole(tx, thread_id, tell, gaps=True)
            tip, count = await log.position(tx, thread_id)
            assert len(await log.branch(tx, thread_id, tip)) == tip == count
        await analyst.close()
    assert problems == []
