"""What users spend, and the budgets that bound it.

What a model call cost is written in the transaction that ends the call, and budgets are read before the next one. So
calls that run at once may exceed a budget, each by what it costs itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

from longthread.access.prices import compute_cost, find_price
from longthread.access.users import Period, SpendingLimit
from longthread.errors import BudgetSpent, PriceMissing
from longthread.model.run import RunAsker
from longthread.settings import Settings
from longthread.store.driver import Row, Transaction

FREE_MODEL = "demo"
"""The model that costs nothing: it calls none."""
SpendingGroup = Literal["user", "key", "agent", "model", "day"]
"""By what a report adds up."""


@dataclass(frozen=True, slots=True)
class SpentCall:
    """What one model call used. `names` are the model's, the one to report first; `cached` are those of `tokens_in`
    that the provider had in its cache."""

    names: tuple[str, ...]
    tokens_in: int
    tokens_out: int
    cached: int = 0
    agent: str = ""


@dataclass(frozen=True, slots=True)
class SpendingRow:
    """What was spent by one user, key, agent or model, or on one day. `unpriced` are tokens of models without a
    price: `cost` is without them."""

    subject: str
    requests: int
    tokens_in: int
    tokens_out: int
    cost: float
    unpriced: int


async def note_spending(tx: Transaction, asker: RunAsker, call: SpentCall, settings: Settings) -> None:
    """Add a model call to what was spent today, in the transaction that ends it."""
    price = find_price(settings, *call.names)
    tokens = {"tokens_in": call.tokens_in, "tokens_out": call.tokens_out}
    is_unpriced = price is None and FREE_MODEL not in call.names
    await tx.later(
        "add_spending",
        user_id=asker.user,
        day=datetime.now(UTC).date().isoformat(),
        key_id=asker.key or "",
        agent=call.agent,
        model=call.names[0],
        cost=0.0 if price is None else compute_cost(price, cached=call.cached, **tokens),
        unpriced=call.tokens_in + call.tokens_out if is_unpriced else 0,
        **tokens,
    )


async def expect_budget(
    tx: Transaction, asker: RunAsker, settings: Settings, *names: str, at: datetime | None = None
) -> bool:
    """Check that a user or a key may call a model, which has these names. Return whether there is any budget.

    Raises:
        BudgetSpent: the budget of the user or of the key is used up.
        PriceMissing: the budget is in money, and the model has no price.
    """
    at = at or datetime.now(UTC)
    of_user, of_key = await tx.fetch_all(
        ("select_budget_of_user", {"user_id": asker.user}),
        ("select_budget_of_key", {"key_id": asker.key or ""}),
    )
    for row in of_user:
        await _expect_rest(tx, row, row["name"], ("select_spent_by_user", asker.user), settings, names, at)
    for row in of_key:
        whose, key_id = f"the API key {row['name']}", asker.key or ""
        await _expect_rest(tx, row, whose, ("select_spent_by_key", key_id), settings, names, at)
    return bool(of_user or of_key)


async def _expect_rest(
    tx: Transaction,
    row: Row,
    whose: str,
    asked: tuple[str, str],
    settings: Settings,
    names: tuple[str, ...],
    at: datetime,
) -> None:
    limit = SpendingLimit(float(row["budget"]), row["budget_unit"], row["budget_period"])
    if limit.unit == "money" and names and FREE_MODEL not in names and find_price(settings, *names) is None:
        raise PriceMissing(whose=whose, model=names[0])
    query, subject = asked
    begin, end = period_of(limit.period, at)
    [found] = await tx.fetch(query, id=subject, since=begin.date().isoformat())
    spent = float(found[limit.unit])
    if spent < limit.amount:
        return
    form = ",.0f" if limit.unit == "tokens" else ",.2f"
    raise BudgetSpent(
        whose=whose,
        period=limit.period,
        spent=format(spent, form),
        budget=format(limit.amount, form),
        unit="tokens" if limit.unit == "tokens" else settings.currency,
        until=f"{end:%Y-%m-%d %H:%M} UTC",
        seconds=max(1, int((end - at).total_seconds())),
    )


def period_of(period: Period, at: datetime) -> tuple[datetime, datetime]:
    """Return when the day, week or month of a moment begins and ends, in UTC. Weeks begin on Mondays."""
    day = at.astimezone(UTC).date()
    if period == "day":
        first, after = day, day + timedelta(days=1)
    elif period == "week":
        first = day - timedelta(days=day.weekday())
        after = first + timedelta(days=7)
    else:
        first = day.replace(day=1)
        after = (first + timedelta(days=31)).replace(day=1)
    return _midnight(first), _midnight(after)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


async def list_spending(
    tx: Transaction, by: SpendingGroup, *, since: date, until: date, user_id: str | None = None
) -> list[SpendingRow]:
    """Return what was spent from one day to another, both included, by a user or by all."""
    days = {"since": since.isoformat(), "until": until.isoformat()}
    return [
        SpendingRow(
            subject=row["subject"],
            requests=int(row["requests"]),
            tokens_in=int(row["tokens_in"]),
            tokens_out=int(row["tokens_out"]),
            cost=float(row["cost"]),
            unpriced=int(row["unpriced"]),
        )
        for row in await tx.fetch("select_spending", by=by, user_id=user_id, **days)
    ]
