"""Users and groups: their rows, and the principal that a user is."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from longthread.access.principal import KeyLimits, Principal, UserRole, Via
from longthread.errors import GroupNotFound, InvalidInput, LastAdmin, NameInUse, UserNotFound
from longthread.model.ids import new_id
from longthread.store.driver import Row, Transaction, one
from longthread.store.log import now

UserStatus = Literal["active", "disabled", "pending"]
SpendingUnit = Literal["tokens", "money"]
Period = Literal["day", "week", "month"]
GroupOrigin = Literal["local", "oidc", "proxy"]
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class SpendingLimit:
    """What may be spent in each period, in tokens or in the currency of the settings."""

    amount: float
    unit: SpendingUnit
    period: Period


@dataclass(frozen=True, slots=True)
class User:
    """A person. `password` is a hash; None: the person logs in elsewhere, or not yet. `pending` waits for an
    administrator, `disabled` was shut out by one."""

    id: str
    name: str
    display: str
    email: str | None
    role: UserRole
    status: UserStatus
    password: str | None
    created_at: datetime
    seen_at: datetime | None
    budget: SpendingLimit | None


@dataclass(frozen=True, slots=True)
class Group:
    """`issuer` is the login provider or the proxy that says who is a member, as identities have it; "": people here."""

    id: str
    name: str
    origin: GroupOrigin
    issuer: str = ""


def normalize_name(name: str) -> str:
    """Return the form in which names are compared. Raises InvalidInput: it is empty, too long, or has control
    characters."""
    normal = unicodedata.normalize("NFKC", name).strip().casefold()
    if not normal or len(normal) > LONGEST_NAME or any(unicodedata.category(each)[0] == "C" for each in normal):
        reason = f"{name!r:.80} is no name: give 1 to {LONGEST_NAME} characters, without control characters."
        raise InvalidInput(reason=reason)
    return normal


async def create_user(
    tx: Transaction,
    name: str,
    *,
    role: UserRole = "member",
    status: UserStatus = "active",
    display: str = "",
    email: str | None = None,
    password: str | None = None,
    user_id: str | None = None,
) -> User:
    """Add a user. `user_id` names whose earlier conversations the user takes over: those of a server that had no login
    have the user of its settings. Raises InvalidInput, or NameInUse: the name or the id is taken."""
    normal = normalize_name(name)
    id_ = user_id or new_id()
    added = await tx.run(
        "insert_user",
        id=id_,
        name=normal,
        display=display or name.strip(),
        email=email,
        role=role,
        status=status,
        password=password,
        created_at=now(),
    )
    if not added:
        raise NameInUse(name=normal)
    return await find_user(tx, id_)


async def find_user(tx: Transaction, user_id: str) -> User:
    """Raises UserNotFound."""
    row = await one(tx, "select_user", user_id=user_id)
    if row is None:
        raise UserNotFound(name=user_id)
    return _user(row)


async def find_user_by_name(tx: Transaction, name: str) -> User:
    """Raises InvalidInput, UserNotFound."""
    row = await one(tx, "select_user_by_name", name=normalize_name(name))
    if row is None:
        raise UserNotFound(name=name)
    return _user(row)


async def list_users(tx: Transaction) -> list[User]:
    return [_user(row) for row in await tx.fetch("select_users")]


async def count_users(tx: Transaction) -> int:
    [row] = await tx.fetch("count_users")
    return int(row["n"])


async def update_user(tx: Transaction, user: User, **changes: Any) -> User:
    """Change a user's fields. Raises LastAdmin: no administrator would be left. Raises NameInUse."""
    changed = replace(user, **changes)
    if "name" in changes:
        changed = replace(changed, name=normalize_name(changed.name))
        taken = await one(tx, "select_user_by_name", name=changed.name)
        if taken is not None and taken["id"] != user.id:
            raise NameInUse(name=changed.name)
    if (user.role, user.status) == ("admin", "active") and (changed.role, changed.status) != ("admin", "active"):
        await _expect_other_admin(tx, user)
    budget = changed.budget or SpendingLimit(0, "tokens", "month")
    await tx.run(
        "update_user",
        user_id=user.id,
        name=changed.name,
        display=changed.display,
        email=changed.email,
        role=changed.role,
        status=changed.status,
        password=changed.password,
        budget=budget.amount if changed.budget else None,
        budget_unit=budget.unit,
        budget_period=budget.period,
    )
    return changed


async def delete_user(tx: Transaction, user: User) -> None:
    """Delete a user with sessions, keys, links, memberships and grants. Where that leaves a project without a manager,
    who was a member longest is one. Raises LastAdmin."""
    if (user.role, user.status) == ("admin", "active"):
        await _expect_other_admin(tx, user)
    await tx.run("delete_grants_to_user", user_id=user.id)
    await tx.run("promote_oldest_members", user_id=user.id)
    await tx.run("delete_memberships", user_id=user.id)
    await tx.run("delete_user", user_id=user.id)


async def _expect_other_admin(tx: Transaction, user: User) -> None:
    await tx.run("lock_admins")  # two administrators cannot remove each other at once
    if await one(tx, "select_other_admins", user_id=user.id) is None:
        raise LastAdmin(name=user.name)


async def load_principal(
    tx: Transaction,
    user: User,
    via: Via,
    *,
    key: KeyLimits | None = None,
    session: str | None = None,
    issuer: str | None = None,
) -> Principal:
    """Return what a user is to the rules, with groups and projects as they are now."""
    groups, projects = await tx.fetch_all(
        ("select_groups_of_user", {"user_id": user.id}), ("select_projects_of_user", {"user_id": user.id})
    )
    return Principal(
        user=user.id,
        name=user.name,
        role=user.role,
        via=via,
        groups=frozenset(row["id"] for row in groups),
        group_names=frozenset(row["name"] for row in groups),
        key=key,
        session=session,
        issuer=issuer,
        projects=tuple((row["project_id"], row["may"]) for row in projects),
    )


async def create_group(tx: Transaction, name: str, *, origin: GroupOrigin = "local", issuer: str = "") -> Group:
    """Raises InvalidInput, NameInUse."""
    normal = normalize_name(name)
    group = Group(new_id(), normal, origin, issuer)
    if not await tx.run("insert_group", id=group.id, name=normal, origin=origin, issuer=issuer, now=now()):
        raise NameInUse(name=normal)
    return group


async def find_group(tx: Transaction, name: str) -> Group:
    """Raises InvalidInput, GroupNotFound."""
    row = await one(tx, "select_group_by_name", name=normalize_name(name))
    if row is None:
        raise GroupNotFound(name=name)
    return _group(row)


async def list_groups(tx: Transaction) -> list[tuple[Group, int]]:
    """Return all groups, each with the number of its members."""
    return [(_group(row), int(row["members"])) for row in await tx.fetch("select_groups")]


async def groups_of(tx: Transaction, user_id: str) -> list[Group]:
    return [_group(row) for row in await tx.fetch("select_groups_of_user", user_id=user_id)]


async def list_members(tx: Transaction, group: Group) -> list[User]:
    return [_user(row) for row in await tx.fetch("select_members", group_id=group.id)]


async def add_member(tx: Transaction, group: Group, user: User) -> None:
    await tx.run("insert_member", group_id=group.id, user_id=user.id)


async def remove_member(tx: Transaction, group: Group, user: User) -> None:
    await tx.run("delete_member", group_id=group.id, user_id=user.id)


async def delete_group(tx: Transaction, group: Group) -> None:
    """Delete a group with what was granted to it."""
    await tx.run("delete_grants_to_group", group_id=group.id)
    await tx.run("delete_group", group_id=group.id)


async def set_groups(tx: Transaction, user: User, names: Collection[str], *, origin: GroupOrigin, issuer: str) -> None:
    """Set a user's groups of a login provider or a proxy to these names; others stay. New groups are added. A name
    that a group here, or of another provider, already has does not let the user in."""
    wanted: dict[str, Group] = {}
    for name in sorted({normalize_name(name) for name in names}):
        row = await one(tx, "select_group_by_name", name=name)
        group = _group(row) if row is not None else await create_group(tx, name, origin=origin, issuer=issuer)
        if (group.origin, group.issuer) == (origin, issuer):
            wanted[group.id] = group
    present: Sequence[Group] = [
        each for each in await groups_of(tx, user.id) if (each.origin, each.issuer) == (origin, issuer)
    ]
    for group in present:
        if group.id not in wanted:
            await remove_member(tx, group, user)
    for group in wanted.values():
        await add_member(tx, group, user)


def _group(row: Row) -> Group:
    return Group(row["id"], row["name"], row["origin"], row["issuer"])


def _user(row: Row) -> User:
    amount = row["budget"]
    return User(
        id=row["id"],
        name=row["name"],
        display=row["display"],
        email=row["email"],
        role=row["role"],
        status=row["status"],
        password=row["password"],
        created_at=datetime.fromisoformat(row["created_at"]),
        seen_at=datetime.fromisoformat(row["seen_at"]) if row["seen_at"] else None,
        budget=None if amount is None else SpendingLimit(float(amount), row["budget_unit"], row["budget_period"]),
    )
