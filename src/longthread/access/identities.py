"""Who a person is to a login provider or a trusted proxy, and which user that is here.

An identity is the issuer's name and its subject, never an e-mail address: anybody can have that written into an
account somewhere.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace

from longthread.access import audit
from longthread.access.principal import UserRole
from longthread.access.sessions import end_sessions
from longthread.access.users import (
    LONGEST_NAME,
    GroupOrigin,
    User,
    count_users,
    create_user,
    delete_user,
    find_group,
    find_user,
    find_user_by_name,
    groups_of,
    normalize_name,
    set_groups,
    update_user,
)
from longthread.errors import (
    AccountDisabled,
    AccountPending,
    DomainRefused,
    GroupNotFound,
    InvalidInput,
    LastAdmin,
    NameInUse,
    SignupRefused,
    UserNotFound,
)
from longthread.settings import OidcIssuer, Settings, Signup
from longthread.store.driver import Transaction, one
from longthread.store.log import now

PROXY = "proxy"
"""The issuer of people whom a trusted proxy names."""
_TRIES = 50
"""How many names are tried for a new user whose name is taken."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A person as an issuer knows them. `name` is what a new user is called."""

    issuer: str
    subject: str
    name: str
    display: str
    email: str | None
    email_verified: bool
    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """Who may come in by an issuer, and as what. `heir` is the id of the first administrator of all: that of the user
    of a server without login, whose conversations the administrator takes over. `has_policies`: what a source shows
    depends on the user's name. `reserved` are the names in policies, where people choose how they are called."""

    origin: GroupOrigin
    signup: Signup
    heir: str
    admin_groups: frozenset[str] = frozenset()
    allowed_domains: frozenset[str] = frozenset()
    link_by_email: bool = False
    link_by_name: bool = False
    has_policies: bool = False
    reserved: frozenset[str] = frozenset()

    @classmethod
    def of_issuer(
        cls, issuer: OidcIssuer, settings: Settings, reserved: frozenset[str] = frozenset()
    ) -> AdmissionRules:
        return cls(
            origin="oidc",
            signup=issuer.signup,
            heir=settings.user,
            admin_groups=frozenset(issuer.admin_groups),
            allowed_domains=frozenset(each.lower().lstrip("@") for each in issuer.allowed_domains),
            link_by_email=issuer.link_by_email,
            has_policies=settings.source_policies is not None,
            reserved=reserved,
        )

    @classmethod
    def of_proxy(cls, settings: Settings) -> AdmissionRules:
        return cls(
            origin="proxy",
            signup=settings.auth_signup,
            heir=settings.user,
            admin_groups=frozenset(settings.auth_admin_groups),
            link_by_name=True,
            has_policies=settings.source_policies is not None,
        )

    def makes_admin(self, identity: Identity) -> bool:
        return not self.admin_groups.isdisjoint(identity.groups)

    def may_be_called(self, identity: Identity, name: str) -> bool:
        """Whether a new user may have this name. One that only looks like the identity's is somebody else's. Policies
        know users by their names: where there are any, the identity has that very name."""
        return identity.name == name or (is_unmistakable(identity.name) and not self.has_policies)


def usable_names(names: Collection[str]) -> frozenset[str]:
    """Return names of groups as they are stored, but no name that a group cannot have, or that only looks like it."""
    found = set()
    for name in filter(is_unmistakable, names):
        with suppress(InvalidInput):
            found.add(normalize_name(name))
    return frozenset(found)


def is_unmistakable(name: str) -> bool:
    """Whether a name from outside differs from its stored form in upper and lower case alone. Else it may be made to
    look like another: full-width letters, ligatures and the like."""
    return unicodedata.is_normalized("NFKC", name) and name.lower() == name.casefold()


def expect_active(user: User) -> None:
    """Raise AccountPending or AccountDisabled: this user may not come in."""
    if user.status == "disabled":
        raise AccountDisabled
    if user.status == "pending":
        raise AccountPending


async def find_user_of(tx: Transaction, issuer: str, subject: str) -> User | None:
    """Return the user whom an issuer's subject is; None: there is none yet."""
    row = await one(tx, "select_identity", issuer=issuer, subject=subject)
    return None if row is None else await find_user(tx, row["user_id"])


async def is_settled(tx: Transaction, user: User, identity: Identity, rules: AdmissionRules) -> bool:
    """Whether a login would change nothing of a user: groups and role are as the issuer says."""
    own = (rules.origin, identity.issuer)
    present = {each.name for each in await groups_of(tx, user.id) if (each.origin, each.issuer) == own}
    wanted = usable_names(identity.groups)
    if present - wanted or _role_by(rules, identity, user) != user.role:
        return False
    for name in wanted - present:
        try:
            group = await find_group(tx, name)
        except GroupNotFound:
            return False
        if (group.origin, group.issuer) == own:
            return False
    return True


async def admit(tx: Transaction, identity: Identity, rules: AdmissionRules) -> User:
    """Return the user of an identity, with role and groups as the issuer says now; add one if the rules allow. The user
    may be pending. Raises DomainRefused, SignupRefused, AccountDisabled."""
    _expect_domain(identity, rules)
    user = await find_user_of(tx, identity.issuer, identity.subject)
    if user is None:
        known = await _find_linkable(tx, identity, rules)
        user = await _link(tx, identity, known or await _sign_up(tx, identity, rules))
        if known is not None:
            await audit.note(tx, "user.change", user.id, actor=user.id, by=rules.origin, linked=identity.issuer)
    if user.status == "disabled":
        raise AccountDisabled
    await tx.run("save_identity", **_row(identity, user))
    if user.email is None and identity.email_verified:
        user = await update_user(tx, user, email=identity.email)
    user = await _set_role(tx, user, _role_by(rules, identity, user), rules)
    await set_groups(tx, user, usable_names(identity.groups), origin=rules.origin, issuer=identity.issuer)
    return user


def _expect_domain(identity: Identity, rules: AdmissionRules) -> None:
    _, at, domain = (identity.email or "").rpartition("@")
    is_allowed = bool(at) and identity.email_verified and domain.lower() in rules.allowed_domains
    if rules.allowed_domains and not is_allowed:
        raise DomainRefused


async def _find_linkable(tx: Transaction, identity: Identity, rules: AdmissionRules) -> User | None:
    """Return the user whom a new identity belongs to: by the verified address, if that is allowed and one user alone
    has it; or, for a proxy, by the name of a user who has not come in by anything yet."""
    if rules.link_by_email and identity.email is not None and identity.email_verified:
        rows = await tx.fetch("select_users_by_email", email=identity.email.lower())
        if len(rows) == 1:
            user = await find_user(tx, rows[0]["id"])
            return await _accept_invitation(tx, user) if await _is_unused(tx, user) else user
    if rules.link_by_name:
        with suppress(UserNotFound, InvalidInput):
            user = await find_user_by_name(tx, identity.name)
            if identity.name == _name_as_typed(user) and await _is_unused(tx, user):
                return await _accept_invitation(tx, user)
    return None


def _name_as_typed(user: User) -> str:
    """Return an invited user's name with the letters that the administrator typed, as far as they are known."""
    with suppress(InvalidInput):
        if normalize_name(user.display) == user.name:
            return user.display
    return user.name


async def _is_unused(tx: Transaction, user: User) -> bool:
    """Whether an administrator made a user who has not come in by anything yet."""
    return user.password is None and not await tx.fetch("select_identities", user_id=user.id)


async def _accept_invitation(tx: Transaction, user: User) -> User:
    """Let in a user who was invited. The link of the invitation stops working."""
    await tx.run("delete_links_of_user", user_id=user.id)
    return await update_user(tx, user, status="active") if user.status == "pending" else user


async def _sign_up(tx: Transaction, identity: Identity, rules: AdmissionRules) -> User:
    if rules.signup == "no":
        raise SignupRefused
    is_admin, is_first = rules.makes_admin(identity), not await count_users(tx)
    if is_first and not is_admin:
        raise SignupRefused  # the first user of all manages the others
    name = _own_name(identity)
    for number in range(1, _TRIES + 1):
        numbered = name if number == 1 else f"{name}-{number}"
        if numbered in rules.reserved or (number == 1 and not rules.may_be_called(identity, name)):
            continue
        with suppress(NameInUse):
            user = await create_user(
                tx,
                numbered,
                role="admin" if is_admin else "member",
                status="active" if is_admin or rules.signup == "yes" else "pending",
                display=identity.display[:LONGEST_NAME],
                email=identity.email if identity.email_verified else None,
                user_id=rules.heir if is_first else None,
            )
            await audit.note(tx, "user.add", user.id, actor=user.id, by=rules.origin, status=user.status)
            return user
    raise NameInUse(name=name)


def _own_name(identity: Identity) -> str:
    """Return a name for a new user, with room for a number."""
    for each in (identity.name, identity.subject):
        with suppress(InvalidInput):
            return normalize_name(each[: LONGEST_NAME - 4])
    return "user"


async def _link(tx: Transaction, identity: Identity, user: User) -> User:
    """Note whose an identity is. Where another login was faster, return its user, and leave out one just made."""
    if await tx.run("insert_identity", **_row(identity, user)):
        return user
    other = await find_user_of(tx, identity.issuer, identity.subject)
    assert other is not None  # its row is why this one was not written
    if other.id != user.id and user.seen_at is None and user.password is None:
        await delete_user(tx, user)
    return other


def _row(identity: Identity, user: User) -> dict[str, object]:
    return {
        "issuer": identity.issuer,
        "subject": identity.subject,
        "user_id": user.id,
        "email": identity.email,
        "email_verified": int(identity.email_verified),
        "now": now(),
    }


def _role_by(rules: AdmissionRules, identity: Identity, user: User) -> UserRole:
    """Return the role of a user by the groups for administrators, if there are any: those alone make one."""
    if not rules.admin_groups:
        return user.role
    if rules.makes_admin(identity):
        return "admin"
    return "member" if user.role == "admin" else user.role


async def _set_role(tx: Transaction, user: User, role: UserRole, rules: AdmissionRules) -> User:
    """Set a role and end the user's sessions, which have the former one. The last administrator stays one."""
    if role == user.role:
        return user
    try:
        changed = await update_user(tx, user, role=role)
    except LastAdmin:
        return user
    await end_sessions(tx, user.id)
    await audit.note(tx, "user.change", user.id, actor=user.id, by=rules.origin, role=role)
    return replace(changed)
