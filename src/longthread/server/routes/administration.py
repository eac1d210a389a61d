"""What administrators do: users, groups, and links by which people set their passwords."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from longthread.access import audit, sessions, users
from longthread.access.principal import UserRole
from longthread.access.users import LONGEST_NAME, Group, Period, SpendingLimit, SpendingUnit, User
from longthread.errors import GroupNotFound, InvalidInput, LastAdmin, NameInUse, RoleMissing, UserNotFound
from longthread.server.account_answers import (
    AccountList,
    AccountView,
    GroupList,
    GroupView,
    NewAccountView,
    OneTimeLink,
    describe_user,
)
from longthread.server.fields import Name, PathSegment, PlainText
from longthread.server.openapi import problems
from longthread.server.state import ServedDep
from longthread.store.driver import Transaction

router = APIRouter(prefix="/api/admin", tags=["administration"])

UserName = Annotated[Name, Field(max_length=LONGEST_NAME)]


class NewUserBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: UserName
    role: UserRole = "member"
    display: Annotated[PlainText, Field(max_length=LONGEST_NAME)] = ""
    email: Annotated[PlainText, Field(max_length=320)] | None = None
    groups: Annotated[list[UserName], Field(max_length=100)] = Field(default_factory=list)


class BudgetBody(BaseModel):
    """What may be spent in each period."""

    model_config = ConfigDict(extra="forbid")

    amount: Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
    unit: SpendingUnit = "tokens"
    period: Period = "month"


class UserBody(BaseModel):
    """What changes of a user. A budget of null: none."""

    model_config = ConfigDict(extra="forbid")

    role: UserRole | None = None
    status: Literal["active", "disabled"] | None = None
    display: Annotated[Name, Field(max_length=LONGEST_NAME)] | None = None
    email: Annotated[PlainText, Field(max_length=320)] | None = None
    budget: BudgetBody | None = None


class GroupBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: UserName


class NewLinkBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Literal["invitation", "reset"] = "reset"


@router.get("/users", responses=problems(RoleMissing, reads=True))
async def list_users(served: ServedDep) -> AccountList:
    """All users, by name."""
    async with served.analyst.store.reading() as tx:
        every = await users.list_users(tx)
        return {"users": [describe_user(each, await users.groups_of(tx, each.id)) for each in every]}


@router.post(
    "/users", status_code=201, responses=problems(GroupNotFound, InvalidInput, NameInUse, RoleMissing, body=True)
)
async def add_user(served: ServedDep, body: NewUserBody) -> NewAccountView:
    """Add a user. The link, which is given this once, lets the person set a password."""
    async with served.analyst.store.writing() as tx:
        groups = [await users.find_group(tx, name) for name in body.groups]
        user = await users.create_user(
            tx, body.name, role=body.role, status="pending", display=body.display, email=body.email
        )
        for group in groups:
            await users.add_member(tx, group, user)
        await audit.note(tx, "user.add", user.id, role=user.role)
        link = await _make_link(tx, "invitation", user)
    return {**describe_user(user, groups), "link": link}


@router.patch("/users/{user_id}", responses=problems(InvalidInput, LastAdmin, RoleMissing, UserNotFound, body=True))
async def change_user(served: ServedDep, user_id: PathSegment, body: UserBody) -> AccountView:
    """Change a user's role, budget or name, or shut the user out: logins and keys stop working within seconds."""
    changes = body.model_dump(exclude_unset=True)
    for name in ("role", "status", "display"):
        if changes.get(name, "") is None:
            changes.pop(name)
    if "budget" in changes:
        changes["budget"] = SpendingLimit(**changes["budget"]) if changes["budget"] is not None else None
    async with served.analyst.store.writing() as tx:
        user = await users.find_user(tx, user_id)
        changed = await users.update_user(tx, user, **changes)
        if changed.status == "disabled" or changed.role != user.role:
            await sessions.end_sessions(tx, user_id)
        await audit.note(
            tx, "user.change", user_id, role=changed.role, status=changed.status, changed=" ".join(changes)
        )
        groups = await users.groups_of(tx, user_id)
    served.authentication.forget(user_id)
    return describe_user(changed, groups)


@router.post("/users/{user_id}/link", responses=problems(RoleMissing, UserNotFound, body=True))
async def make_link(served: ServedDep, user_id: PathSegment, body: NewLinkBody | None = None) -> OneTimeLink:
    """Make a link by which a user sets a password, once, within a day. Earlier links of the user stop working."""
    async with served.analyst.store.writing() as tx:
        return await _make_link(tx, body.kind if body is not None else "reset", await users.find_user(tx, user_id))


@router.post("/users/{user_id}/logout", status_code=204, responses=problems(RoleMissing, UserNotFound))
async def log_user_out(served: ServedDep, user_id: PathSegment) -> Response:
    """End all logins of a user."""
    async with served.analyst.store.writing() as tx:
        await users.find_user(tx, user_id)
        await sessions.end_sessions(tx, user_id)
        await audit.note(tx, "session.end", user_id)
    served.authentication.forget(user_id)
    return Response(status_code=204)


@router.get("/groups", responses=problems(RoleMissing, reads=True))
async def list_groups(served: ServedDep) -> GroupList:
    """All groups, by name."""
    async with served.analyst.store.reading() as tx:
        return {"groups": [_describe_group(group, members) for group, members in await users.list_groups(tx)]}


@router.post("/groups", status_code=201, responses=problems(InvalidInput, NameInUse, RoleMissing, body=True))
async def add_group(served: ServedDep, body: GroupBody) -> GroupView:
    """Add a group."""
    async with served.analyst.store.writing() as tx:
        group = await users.create_group(tx, body.name)
        await audit.note(tx, "group.add", group.id)
        return _describe_group(group, 0)


@router.delete("/groups/{group_id}", status_code=204, responses=problems(GroupNotFound, RoleMissing))
async def delete_group(served: ServedDep, group_id: PathSegment) -> Response:
    """Delete a group, with what was granted to it."""
    async with served.analyst.store.writing() as tx:
        await users.delete_group(tx, await _find_group(tx, group_id))
        await audit.note(tx, "group.delete", group_id)
    return Response(status_code=204)


@router.get("/groups/{group_id}/members", responses=problems(GroupNotFound, RoleMissing, reads=True))
async def list_members(served: ServedDep, group_id: PathSegment) -> AccountList:
    """The members of a group, by name."""
    async with served.analyst.store.reading() as tx:
        members = await users.list_members(tx, await _find_group(tx, group_id))
        return {"users": [describe_user(each, await users.groups_of(tx, each.id)) for each in members]}


@router.put(
    "/groups/{group_id}/members/{user_id}",
    status_code=204,
    responses=problems(GroupNotFound, RoleMissing, UserNotFound),
)
async def add_member(served: ServedDep, group_id: PathSegment, user_id: PathSegment) -> Response:
    """Add a user to a group."""
    async with served.analyst.store.writing() as tx:
        await users.add_member(tx, await _find_group(tx, group_id), await users.find_user(tx, user_id))
        await audit.note(tx, "member.add", user_id, group=group_id)
    served.authentication.forget(user_id)
    return Response(status_code=204)


@router.delete(
    "/groups/{group_id}/members/{user_id}",
    status_code=204,
    responses=problems(GroupNotFound, RoleMissing, UserNotFound),
)
async def remove_member(served: ServedDep, group_id: PathSegment, user_id: PathSegment) -> Response:
    """Take a user out of a group."""
    async with served.analyst.store.writing() as tx:
        await users.remove_member(tx, await _find_group(tx, group_id), await users.find_user(tx, user_id))
        await audit.note(tx, "member.remove", user_id, group=group_id)
    served.authentication.forget(user_id)
    return Response(status_code=204)


async def _find_group(tx: Transaction, group_id: str) -> Group:
    for group, _ in await users.list_groups(tx):
        if group.id == group_id:
            return group
    raise GroupNotFound(name=group_id)


async def _make_link(tx: Transaction, kind: Literal["invitation", "reset"], user: User) -> OneTimeLink:
    token = await sessions.create_link(tx, kind, user)
    await audit.note(tx, "link.make", user.id, kind=kind)
    expires_at = datetime.now(UTC) + sessions.INVITATION_LASTS
    return {"path": sessions.link_path(token), "expires_at": expires_at.isoformat()}


def _describe_group(group: Group, members: int) -> GroupView:
    return {"id": group.id, "name": group.name, "origin": group.origin, "members": members}
