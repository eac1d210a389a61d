"""Grants and rights: what was granted to whom, and what a caller may use and change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from longthread.access import audit
from longthread.access.keys import find_key
from longthread.access.principal import KeyLimits, Principal, local_principal
from longthread.errors import AccessEnded, ApiKeyNotFound, GroupNotFound, InvalidInput, NotGranted, UserNotFound
from longthread.model.run import RunAsker
from longthread.store.driver import Row, Transaction, one
from longthread.store.log import now

GrantKind = Literal["source", "agent", "skill", "tool", "model", "upstream", "route"]
GRANT_KINDS: tuple[GrantKind, ...] = get_args(GrantKind)
ToKind = Literal["user", "group", "everyone"]
May = Literal["use", "edit"]
GrantItem = tuple[GrantKind, str]
"""A kind and an item: the id of a definition, or the name of a model or of what is configured."""
BY_DEFAULT = "default"
"""Who grants what everyone may use by default."""
_ANY = "*"
"""At the end of a model's name: all models whose names begin so."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a user, a group or everyone may do with an item. `edit` includes `use`. `to_name` is for people."""

    kind: GrantKind
    item: str
    to_kind: ToKind
    to_id: str
    may: May
    granted_by: str
    granted_at: datetime | None = None
    to_name: str | None = None

    def to_json(self) -> dict[str, Any]:
        at = self.granted_at.isoformat() if self.granted_at is not None else None
        return {**{name: getattr(self, name) for name in self.__slots__}, "granted_at": at}


@dataclass(frozen=True, slots=True)
class GrantedRights:
    """What a caller may use and change, as it was granted when this was read.

    Administrators may all, and so do callers of a server without login. Builders change what they made, and what they
    have the right `edit` for; members change nothing. The limits of an API key hold for everybody.
    """

    principal: Principal
    granted: Mapping[GrantItem, May] = field(default_factory=dict)
    project_sources: frozenset[str] = frozenset()
    """The sources that the project gives its members, in a conversation of one."""

    @property
    def is_unbounded(self) -> bool:
        """Whether nothing has to be looked up: the caller may all, and has no key that names less."""
        key = self.principal.key
        return _may_all(self.principal) and (key is None or (key.agents, key.models, key.sources) == (None, None, None))

    def may_use(self, kind: GrantKind, item: str, *names: str) -> bool:
        """Whether the caller may use an item. `names` are others by which the limits of a key may name it."""
        if not self.is_in_key(kind, (item, *names)):
            return False
        if kind == "source" and item in self.project_sources:
            return True
        return _may_all(self.principal) or self._granted_as(kind, item) is not None

    def may_edit(self, kind: GrantKind, item: str, *names: str) -> bool:
        """Whether the caller may change or delete a definition. `names` are as in `may_use`."""
        if not self.is_in_key(kind, (item, *names)):
            return False
        if _may_all(self.principal):
            return True
        return self.principal.has_role("builder") and self._granted_as(kind, item) == "edit"

    def expect_use(self, kind: GrantKind, item: str, name: str = "") -> None:
        """Raise NotGranted: the caller may not use the item, which has this name for people."""
        if not self.may_use(kind, item, name or item):
            raise NotGranted(use="use", kind=kind, name=name or item)

    def expect_edit(self, kind: GrantKind, item: str, name: str = "") -> None:
        """Raise NotGranted: the caller may not change the item, which has this name for people."""
        if not self.may_edit(kind, item, name or item):
            raise NotGranted(use="edit", kind=kind, name=name or item)

    def _granted_as(self, kind: GrantKind, item: str) -> May | None:
        exact = self.granted.get((kind, item))
        if exact is not None or kind != "model":
            return exact
        patterns = (each for (of, each) in self.granted if of == kind and each.endswith(_ANY))
        return next((self.granted[kind, each] for each in patterns if item.startswith(each[: -len(_ANY)])), None)

    def is_in_key(self, kind: GrantKind, names: Collection[str]) -> bool:
        """Whether the limits of the caller's key, if there is one, have one of the names."""
        key = self.principal.key
        if key is None:
            return True
        limits: Mapping[str, frozenset[str] | None] = {
            "agent": key.agents,
            "model": key.models,
            "source": key.sources,
        }
        allowed = limits.get(kind)
        if allowed is None or not allowed.isdisjoint(names):
            return True
        patterns = [each[: -len(_ANY)] for each in allowed if kind == "model" and each.endswith(_ANY)]
        return any(name.startswith(pattern) for name in names for pattern in patterns)


EVERYTHING = GrantedRights(local_principal("", is_owner=True))
"""The rights of callers whom nothing limits: those of a server without login, and of the command line."""


def _may_all(principal: Principal) -> bool:
    return principal.via in ("local", "token") or principal.has_role("admin")


async def load_rights(tx: Transaction, principal: Principal, defaults: Collection[GrantItem]) -> GrantedRights:
    """Return the rights of a caller, with one query; with none where the role decides all. `defaults` are what
    everyone may use unless an administrator has taken that back."""
    if _may_all(principal):
        return GrantedRights(principal)
    rows = await tx.fetch("select_grants_of_user", user_id=principal.user)
    granted = [((row["kind"], row["item"]), row["may"]) for row in rows]
    return GrantedRights(principal, combine_grants(granted, defaults=defaults))


async def load_rights_of(tx: Transaction, asker: RunAsker | None, defaults: Collection[GrantItem]) -> GrantedRights:
    """Return the present rights of who asked for a run, with a few queries; with none without a login. Raises
    AccessEnded: the user or the API key may ask nothing any more."""
    if asker is None:
        return EVERYTHING
    users, groups, granted = await tx.fetch_all(
        ("select_user", {"user_id": asker.user}),
        ("select_groups_of_user", {"user_id": asker.user}),
        ("select_grants_of_user", {"user_id": asker.user}),
    )
    if not users or users[0]["status"] != "active":
        raise AccessEnded
    principal = Principal(
        user=asker.user,
        name=users[0]["name"],
        role=users[0]["role"],
        via="session" if asker.key is None else "key",
        groups=frozenset(row["id"] for row in groups),
        group_names=frozenset(row["name"] for row in groups),
        key=None if asker.key is None else await _working_limits(tx, asker.user, asker.key),
    )
    each = [((row["kind"], row["item"]), row["may"]) for row in granted]
    return GrantedRights(principal, {} if _may_all(principal) else combine_grants(each, defaults=defaults))


async def _working_limits(tx: Transaction, user_id: str, key_id: str) -> KeyLimits:
    """Return the limits of a key. Raises AccessEnded: it does not work any more."""
    try:
        key = await find_key(tx, key_id, user_id)
    except ApiKeyNotFound:
        raise AccessEnded from None
    if not key.works_at(datetime.now(UTC)):
        raise AccessEnded
    return key.limits


def combine_grants(
    granted: Iterable[tuple[GrantItem, str]], *, defaults: Collection[GrantItem]
) -> dict[GrantItem, May]:
    """Return the most that grants allow for each item. `none` takes a default back, and nothing else."""
    all_ = list(granted)
    withdrawn = {item for item, may in all_ if may == "none"}
    found: dict[GrantItem, May] = {each: "use" for each in defaults if each not in withdrawn}
    for item, may in all_:
        if may != "none" and found.get(item) != "edit":
            found[item] = "edit" if may == "edit" else "use"
    return found


async def list_grants(
    tx: Transaction, defaults: Collection[GrantItem], *, kind: GrantKind | None = None, item: str | None = None
) -> list[Grant]:
    """Return all grants, or those of a kind or an item, with what everyone may use by default."""
    rows = await tx.fetch("select_grants")
    withdrawn = {(row["kind"], row["item"]) for row in rows if row["may"] == "none"}
    stored = [_grant(row) for row in rows if row["may"] != "none"]
    to_all = {(each.kind, each.item) for each in stored if each.to_kind == "everyone"}
    usual = [
        Grant(of, name, "everyone", "", "use", BY_DEFAULT)
        for of, name in sorted(set(defaults))
        if (of, name) not in withdrawn | to_all
    ]
    found = [each for each in [*usual, *stored] if kind in (None, each.kind) and item in (None, each.item)]
    return sorted(found, key=lambda each: (each.kind, each.item, each.to_kind, each.to_name or "", each.to_id))


async def add_grant(
    tx: Transaction, kind: GrantKind, item: str, to_kind: ToKind, to_id: str, may: May, *, by: str
) -> None:
    """Grant a right, in the place of what was granted to the same people before. Raises UserNotFound, GroupNotFound;
    InvalidInput: everyone has no id."""
    if to_kind == "user" and await one(tx, "select_user", user_id=to_id) is None:
        raise UserNotFound(name=to_id)
    if to_kind == "group" and await one(tx, "select_group", group_id=to_id) is None:
        raise GroupNotFound(name=to_id)
    if to_kind == "everyone" and to_id:
        raise InvalidInput(reason="A grant to everyone has no id. Leave it out.")
    await _save(tx, (kind, item), to_kind, to_id, may, by=by)
    await audit.note(tx, "grant.add", item, kind=kind, to_kind=to_kind, to_id=to_id, may=may)


async def remove_grant(
    tx: Transaction,
    kind: GrantKind,
    item: str,
    to_kind: ToKind,
    to_id: str,
    *,
    defaults: Collection[GrantItem],
    by: str,
) -> bool:
    """Take a grant back; for everyone also what is granted by default. Return whether there was one."""
    is_default = to_kind == "everyone" and (kind, item) in defaults
    there = await list_grants(tx, defaults, kind=kind, item=item)
    if not any((each.to_kind, each.to_id) == (to_kind, to_id) for each in there):
        return False
    await tx.run("delete_grant", kind=kind, item=item, to_kind=to_kind, to_id=to_id)
    if is_default:
        await _save(tx, (kind, item), to_kind, to_id, "none", by=by)
    await audit.note(tx, "grant.remove", item, kind=kind, to_kind=to_kind, to_id=to_id)
    return True


async def own_item(tx: Transaction, kind: GrantKind, item: str, user_id: str) -> None:
    """Let a user change what the user has made."""
    await _save(tx, (kind, item), "user", user_id, "edit", by=user_id)


async def forget_item(tx: Transaction, kind: GrantKind, item: str) -> None:
    """Delete all grants of an item that is deleted."""
    await tx.run("delete_grants_of_item", kind=kind, item=item)


async def _save(tx: Transaction, item: GrantItem, to_kind: ToKind, to_id: str, may: str, *, by: str) -> None:
    about = {"kind": item[0], "item": item[1], "to_kind": to_kind, "to_id": to_id}
    await tx.run("save_grant", **about, may=may, granted_by=by, now=now())


def _grant(row: Row) -> Grant:
    return Grant(
        kind=row["kind"],
        item=row["item"],
        to_kind=row["to_kind"],
        to_id=row["to_id"],
        may=row["may"],
        granted_by=row["granted_by"],
        granted_at=datetime.fromisoformat(row["granted_at"]),
        to_name=row["to_name"],
    )
