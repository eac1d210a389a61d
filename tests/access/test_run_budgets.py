"""Budgets of runs: what their model calls cost is written with them, and a spent budget ends a run in a pause."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.runs.test_workers import Gated
from tests.script import COUNT, events_of, finish

from longthread.access.keys import NewKey, create_key
from longthread.access.spending import SpendingGroup, list_spending
from longthread.access.users import SpendingLimit, create_user, find_user, update_user
from longthread.errors import BudgetSpent, PriceMissing, TooManyRequests
from longthread.model.memory import ANALYST
from longthread.model.run import RunAsker
from longthread.runs.analyst import Analyst
from longthread.runs.shared import RunHandle
from longthread.store.driver import Driver
from longthread.testing import ScriptedChatModel

ADA, MODEL = "ada-id", "other:model"
TINY = SpendingLimit(1, "tokens", "month")


async def make_asker(store: Driver, *, of_user: SpendingLimit | None = None, **limits: Any) -> RunAsker:
    async with store.writing() as tx:
        ada = await create_user(tx, "ada", role="admin", user_id=ADA)
        await update_user(tx, ada, budget=of_user)
        key, _ = await create_key(tx, ada, NewKey("ci", ["chat"], **limits))
    return RunAsker(ADA, key.id)


async def ask(analyst: Analyst, asker: RunAsker | None, shop: str, thread: str = "t") -> RunHandle:
    about: dict[str, Any] = {"user_id": ADA, "asker": asker, "source": shop, "model": MODEL}
    return await analyst.ask("How many customers?", thread_id=thread, **about)


async def requests_by(store: Driver, by: SpendingGroup) -> dict[str, int]:
    today = datetime.now(UTC).date()
    async with store.reading() as tx:
        rows = await list_spending(tx, by, since=today, until=today)
    assert all(row.tokens_in > 0 and row.tokens_out > 0 for row in rows)
    return {row.subject: row.requests for row in rows}


async def test_each_model_call_is_written_once(open_analyst: OpenAnalyst, store: Driver, shop: str) -> None:
    asker = await make_asker(store)
    handle = await ask(await open_analyst([COUNT, finish("Three [q1].")]), asker, shop)
    assert (await handle.wait()).type == "finished"
    assert await requests_by(store, "model") == {MODEL: 2}
    assert await requests_by(store, "user") == {ADA: 2}
    assert await requests_by(store, "key") == {asker.key: 2}
    assert await requests_by(store, "agent") == {ANALYST: 2}


async def test_without_a_login_nothing_is_written(open_analyst: OpenAnalyst, store: Driver, shop: str) -> None:
    handle = await ask(await open_analyst([COUNT, finish("Three [q1].")]), None, shop)
    assert (await handle.wait()).type == "finished"
    assert await requests_by(store, "model") == {}


@pytest.mark.parametrize("whose", ["of_user", "budget"])
async def test_a_run_whose_budget_is_spent_pauses_and_others_are_refused(
    open_analyst: OpenAnalyst, store: Driver, shop: str, whose: str
) -> None:
    asker = await make_asker(store, **{whose: TINY})
    model = ScriptedChatModel([COUNT, finish("Three [q1].")])
    analyst = await open_analyst(model)
    handle = await ask(analyst, asker, shop)
    events = await events_of(handle)
    assert (events[-1].type, events[-1].data["reason"]) == ("paused", "budget_spent")
    assert "q1" in events[-1].data["summary"] and len(model.calls) == 1
    assert [event for event in events if event.type == "warning" and "is spent" in event.data["message"]]
    assert await requests_by(store, "model") == {MODEL: 1}
    with pytest.raises(BudgetSpent):
        await ask(analyst, asker, shop, "another")
    with pytest.raises(BudgetSpent):
        await analyst.runs.resume("t", user_id=ADA, asker=asker)
    async with store.writing() as tx:
        await update_user(tx, await find_user(tx, ADA), budget=None)
    if whose == "of_user":
        resumed = await analyst.runs.resume("t", user_id=ADA, asker=asker)
        assert (await resumed.wait()).type == "finished"


async def test_a_budget_in_money_needs_a_price(open_analyst: OpenAnalyst, store: Driver, shop: str) -> None:
    asker = await make_asker(store, budget=SpendingLimit(1, "money", "day"))
    model = ScriptedChatModel([COUNT, finish("Three [q1].")])
    with pytest.raises(PriceMissing):
        await ask(await open_analyst(model), asker, shop)
    priced = await open_analyst(model, prices={MODEL: {"input": 1, "output": 1}})
    handle = await ask(priced, asker, shop)
    assert (await handle.wait()).type == "finished"


async def test_a_key_has_as_many_runs_at_once_as_it_may(open_analyst: OpenAnalyst, store: Driver, shop: str) -> None:
    asker = await make_asker(store, parallel=1)
    model = Gated([finish("Three."), finish("Three.")])
    analyst = await open_analyst(model)
    first = await ask(analyst, asker, shop)
    with pytest.raises(TooManyRequests, match="1 runs at once"):
        await ask(analyst, asker, shop, "second")
    model.metadata["gate"].set()  # type: ignore[index]
    await first.wait()
    second = await ask(analyst, asker, shop, "second")
    await second.wait()
