"""What users spend is added up by day, and budgets end it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from longthread.access.keys import NewKey, create_key
from longthread.access.spending import (
    SpendingRow,
    SpentCall,
    expect_budget,
    list_spending,
    note_spending,
    period_of,
)
from longthread.access.users import Period, SpendingLimit, SpendingUnit, create_user, update_user
from longthread.errors import BudgetSpent, PriceMissing
from longthread.model.run import RunAsker
from longthread.settings import Settings
from longthread.store.driver import Driver

GPT = SpentCall(("openai:gpt", "gpt"), tokens_in=1_000, tokens_out=500, agent="main")
TODAY = datetime.now(UTC).date()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.of(data_dir=tmp_path, prices={"gpt": {"input": 1_000, "output": 2_000}}, currency="EUR")


async def spender(
    store: Driver, *, budget: SpendingLimit | None = None, of_key: SpendingLimit | None = None
) -> RunAsker:
    async with store.writing() as tx:
        user = await create_user(tx, "ada")
        await update_user(tx, user, budget=budget)
        key, _ = await create_key(tx, user, NewKey("ci", ["chat"], budget=of_key))
    return RunAsker(user.id, key.id)


async def spend(store: Driver, who: RunAsker, settings: Settings, *calls: SpentCall) -> None:
    async with store.writing() as tx:
        for call in calls:
            await note_spending(tx, who, call, settings)


async def test_calls_of_a_day_are_added_up(store: Driver, settings: Settings) -> None:
    who, other = RunAsker("ada", "k1"), RunAsker("ben")
    await spend(store, who, settings, GPT, replace(GPT, cached=400), replace(GPT, names=("unpriced",)))
    await spend(store, other, settings, replace(GPT, names=("demo",), agent="商店"))
    today = {"since": TODAY, "until": TODAY}
    async with store.reading() as tx:
        by_model = await list_spending(tx, "model", **today)
        assert by_model == [
            SpendingRow("demo", 1, 1_000, 500, 0.0, 0),
            SpendingRow("openai:gpt", 2, 2_000, 1_000, 4.0, 0),
            SpendingRow("unpriced", 1, 1_000, 500, 0.0, 1_500),
        ]
        assert [row.subject for row in await list_spending(tx, "user", **today)] == ["ada", "ben"]
        assert [row.subject for row in await list_spending(tx, "key", **today)] == ["", "k1"]
        assert [row.subject for row in await list_spending(tx, "agent", **today)] == ["main", "商店"]
        [day] = await list_spending(tx, "day", **today, user_id="ada")
        assert (day.subject, day.requests, day.cost, day.unpriced) == (TODAY.isoformat(), 3, 4.0, 1_500)
        yesterday = TODAY - timedelta(days=1)
        assert await list_spending(tx, "user", since=yesterday, until=yesterday) == []


async def test_calls_at_once_are_all_counted(store: Driver, settings: Settings) -> None:
    await asyncio.gather(*(spend(store, RunAsker("ada"), settings, GPT) for _ in range(12)))
    async with store.reading() as tx:
        [row] = await list_spending(tx, "user", since=TODAY, until=TODAY)
    assert (row.requests, row.tokens_in, row.cost) == (12, 12_000, pytest.approx(24.0))


@pytest.mark.parametrize("of_key", [False, True])
@pytest.mark.parametrize(("unit", "amount"), [("tokens", 3_000.0), ("money", 4.0)])
async def test_a_spent_budget_refuses_the_next_call(
    store: Driver, settings: Settings, unit: SpendingUnit, amount: float, of_key: bool
) -> None:
    limit = SpendingLimit(amount, unit, "month")
    who = await spender(store, **{"of_key" if of_key else "budget": limit})
    for _ in range(2):
        async with store.reading() as tx:
            await expect_budget(tx, who, settings, "openai:gpt", "gpt")
        await spend(store, who, settings, GPT)
    async with store.reading() as tx:
        with pytest.raises(BudgetSpent) as refused:
            await expect_budget(tx, who, settings, "openai:gpt", "gpt")
        if of_key:
            await expect_budget(tx, RunAsker(who.user), settings, "gpt")
    error = refused.value
    numbers = ("3,000", "3,000", "tokens") if unit == "tokens" else ("4.00", "4.00", "EUR")
    assert (error.spent, error.budget, error.unit) == numbers
    assert error.whose == ("the API key ci" if of_key else "ada") and error.seconds > 0
    assert datetime.strptime(error.until, "%Y-%m-%d %H:%M %Z").day == 1


async def test_a_budget_in_money_refuses_a_model_without_a_price(store: Driver, settings: Settings) -> None:
    who = await spender(store, budget=SpendingLimit(1, "money", "day"))
    async with store.reading() as tx:
        with pytest.raises(PriceMissing, match="model openai:new has no price"):
            await expect_budget(tx, who, settings, "openai:new", "new")
        await expect_budget(tx, who, settings, "demo")
        await expect_budget(tx, who, settings, "gpt")


async def test_who_has_no_budget_may_go_on(store: Driver, settings: Settings) -> None:
    who = await spender(store)
    await spend(store, who, settings, GPT)
    async with store.reading() as tx:
        await expect_budget(tx, who, settings, "anything")
        await expect_budget(tx, RunAsker("unknown"), settings, "anything")


@pytest.mark.parametrize("period", ["day", "week", "month"])
async def test_what_was_spent_in_an_earlier_period_counts_no_more(
    store: Driver, settings: Settings, period: Period
) -> None:
    who = await spender(store, budget=SpendingLimit(1, "tokens", period))
    await spend(store, who, settings, GPT)
    _, after = period_of(period, datetime.now(UTC))
    async with store.reading() as tx:
        with pytest.raises(BudgetSpent):
            await expect_budget(tx, who, settings, at=after - timedelta(seconds=1))
        await expect_budget(tx, who, settings, at=after)


@pytest.mark.parametrize(
    ("period", "at", "begin", "end"),
    [
        ("day", "2026-11-30T23:59:59+00:00", date(2026, 11, 30), date(2026, 12, 1)),
        ("day", "2026-12-01T01:00:00+02:00", date(2026, 11, 30), date(2026, 12, 1)),
        ("week", "2026-11-29T12:00:00+00:00", date(2026, 11, 23), date(2026, 11, 30)),
        ("week", "2026-11-30T00:00:00+00:00", date(2026, 11, 30), date(2026, 12, 7)),
        ("month", "2026-12-31T12:00:00+00:00", date(2026, 12, 1), date(2027, 1, 1)),
        ("month", "2028-02-29T12:00:00+00:00", date(2028, 2, 1), date(2028, 3, 1)),
    ],
)
def test_periods_are_those_of_utc(period: Any, at: str, begin: date, end: date) -> None:
    found = period_of(period, datetime.fromisoformat(at))
    assert [each.date() for each in found] == [begin, end] and all(each.hour == 0 for each in found)
