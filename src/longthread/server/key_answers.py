"""API keys and what was spent, as the API answers with them."""

from __future__ import annotations

from typing import Any, cast

from typing_extensions import TypedDict

from longthread.access.keys import ApiKey
from longthread.access.principal import KeyScope
from longthread.access.spending import SpendingGroup, SpendingRow
from longthread.server.account_answers import BudgetView
from longthread.server.answers import Timestamp


class ApiKeyView(TypedDict):
    """An API key without its secret. Agents, models and sources of null: all that its user may use. `seen_at` is when
    it was used last, to five minutes."""

    id: str
    name: str
    user: str
    scopes: list[KeyScope]
    agents: list[str] | None
    models: list[str] | None
    sources: list[str] | None
    budget: BudgetView | None
    requests_per_minute: int | None
    parallel: int | None
    expires_at: Timestamp | None
    made_at: Timestamp
    seen_at: Timestamp | None


class ApiKeyList(TypedDict):
    keys: list[ApiKeyView]


class NewApiKeyView(ApiKeyView):
    """A new API key with its text, which is given this once."""

    key: str


class SpendingView(TypedDict):
    """What one user, key, agent or model spent, or what was spent on one day. `name` is for people; null where there
    is none: requests without a key, or through the gateway, which has no agent. `cost` is in the server's currency,
    without the `unpriced` tokens of models that have no price."""

    id: str
    name: str | None
    requests: int
    tokens_in: int
    tokens_out: int
    cost: float
    unpriced: int


class SpendingReport(TypedDict):
    """What was spent from one day to another, both included, in UTC."""

    by: SpendingGroup
    since: str
    until: str
    currency: str
    rows: list[SpendingView]


def describe_key(key: ApiKey) -> ApiKeyView:
    described: Any = key.to_json()
    return cast(ApiKeyView, described)


def describe_spending(row: SpendingRow, name: str | None) -> SpendingView:
    return {
        "id": row.subject,
        "name": name,
        "requests": row.requests,
        "tokens_in": row.tokens_in,
        "tokens_out": row.tokens_out,
        "cost": row.cost,
        "unpriced": row.unpriced,
    }
