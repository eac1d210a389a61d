"""API keys of users, and what users spent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from longthread.access import keys, users
from longthread.access.keys import LONGEST_NAME, MOST_LIMITS, NewKey
from longthread.access.principal import SCOPES, KeyScope
from longthread.access.spending import SpendingGroup, list_spending
from longthread.access.users import SpendingLimit
from longthread.errors import AccountMissing, ApiKeyNotFound, InvalidInput, RoleMissing, UserNotFound
from longthread.server.fields import WHOLE, Name, PathSegment, PlainText, Time
from longthread.server.key_answers import (
    ApiKeyList,
    NewApiKeyView,
    SpendingReport,
    describe_key,
    describe_spending,
)
from longthread.server.openapi import problems
from longthread.server.routes.administration import BudgetBody
from longthread.server.state import PrincipalDep, Served, ServedDep
from longthread.store import catalog
from longthread.store.driver import Transaction

router = APIRouter(prefix="/api", tags=["keys"])

DEFAULT_DAYS, MOST_DAYS = 30, 3_660
"""Days of a report."""
LimitNames = Annotated[list[Annotated[Name, Field(max_length=1_000)]], Field(min_length=1, max_length=MOST_LIMITS)]
Count = Annotated[int, WHOLE, Field(ge=1, lt=2**31)]
Day = Annotated[date, Query(description="A day in UTC, such as 2030-01-31.")]


class ApiKeyBody(BaseModel):
    """A new API key: what it is for, and its limits. What is left out is not limited."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[PlainText, Field(min_length=1, max_length=LONGEST_NAME)]
    scopes: Annotated[list[KeyScope], Field(min_length=1, max_length=len(SCOPES))]
    agents: LimitNames | None = None
    models: LimitNames | None = None
    sources: LimitNames | None = None
    expires_at: Time | None = None
    budget: BudgetBody | None = None
    requests_per_minute: Count | None = None
    parallel: Count | None = None


@router.get("/me/keys", responses=problems(AccountMissing, reads=True))
async def list_keys(served: ServedDep, principal: PrincipalDep) -> ApiKeyList:
    """Your API keys that are not revoked, the oldest first."""
    async with served.analyst.store.reading() as tx:
        return {"keys": [describe_key(each) for each in await keys.list_keys(tx, principal.user)]}


@router.post("/me/keys", status_code=201, responses=problems(AccountMissing, InvalidInput, UserNotFound, body=True))
async def add_key(served: ServedDep, principal: PrincipalDep, body: ApiKeyBody) -> NewApiKeyView:
    """Make an API key. Its text is in this answer alone. A key cannot make another one."""
    budget = SpendingLimit(**body.budget.model_dump()) if body.budget is not None else None
    new = NewKey(**{**body.model_dump(), "budget": budget})
    async with served.analyst.store.writing() as tx:
        key, text = await keys.create_key(tx, await users.find_user(tx, principal.user), new)
    return {**describe_key(key), "key": text}


@router.delete("/me/keys/{key_id}", status_code=204, responses=problems(AccountMissing, ApiKeyNotFound))
async def revoke_key(served: ServedDep, principal: PrincipalDep, key_id: PathSegment) -> Response:
    """Revoke one of your API keys. It stops working within seconds."""
    return await _revoke(served, key_id, principal.user)


@router.get("/me/usage", responses=problems(InvalidInput, reads=True))
async def show_usage(
    served: ServedDep,
    principal: PrincipalDep,
    by: SpendingGroup = "day",
    since: Day | None = None,
    until: Day | None = None,
) -> SpendingReport:
    """What you spent, by day, key, agent or model; by default in the last 30 days."""
    return await _report(served, by, since, until, principal.user)


@router.get("/admin/keys", responses=problems(RoleMissing, reads=True))
async def list_all_keys(served: ServedDep) -> ApiKeyList:
    """Everyone's API keys that are not revoked, the oldest first."""
    async with served.analyst.store.reading() as tx:
        return {"keys": [describe_key(each) for each in await keys.list_keys(tx)]}


@router.delete("/admin/keys/{key_id}", status_code=204, responses=problems(ApiKeyNotFound, RoleMissing))
async def revoke_any_key(served: ServedDep, key_id: PathSegment) -> Response:
    """Revoke anybody's API key."""
    return await _revoke(served, key_id, None)


@router.get("/admin/usage", responses=problems(InvalidInput, RoleMissing, reads=True))
async def show_all_usage(
    served: ServedDep, by: SpendingGroup = "user", since: Day | None = None, until: Day | None = None
) -> SpendingReport:
    """What everyone spent, by user, key, agent, model or day; by default in the last 30 days."""
    return await _report(served, by, since, until, None)


async def _revoke(served: Served, key_id: str, user_id: str | None) -> Response:
    async with served.analyst.store.writing() as tx:
        key = await keys.revoke_key(tx, key_id, user_id)
    served.authentication.forget(key.user_id)
    return Response(status_code=204)


async def _report(
    served: Served, by: SpendingGroup, since: date | None, until: date | None, user_id: str | None
) -> SpendingReport:
    """Raises InvalidInput: the days are in no order, or too many."""
    last = until or max(datetime.now(UTC).date(), since or date.min)
    first = since or last - timedelta(days=min(DEFAULT_DAYS - 1, (last - date.min).days))
    if not 0 <= (last - first).days <= MOST_DAYS:
        raise InvalidInput(reason=f"`until` is no day before `since`, and a report has at most {MOST_DAYS} days.")
    async with served.analyst.store.reading() as tx:
        rows = await list_spending(tx, by, since=first, until=last, user_id=user_id)
        names = await _names_of(tx, by)
    return {
        "by": by,
        "since": first.isoformat(),
        "until": last.isoformat(),
        "currency": served.analyst.settings.currency,
        "rows": [describe_spending(row, names.get(row.subject, row.subject) or None) for row in rows],
    }


async def _names_of(tx: Transaction, by: SpendingGroup) -> Mapping[str, str]:
    """Return the names of what a report is by, where ids are others."""
    if by == "user":
        return {each.id: each.display or each.name for each in await users.list_users(tx)}
    if by == "key":
        return await keys.names_of_keys(tx)
    if by == "agent":
        return {each.definition.id: each.definition.name for each in await catalog.definitions(tx)}
    return {}
