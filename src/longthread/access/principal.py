"""The caller of a request, and what that caller may do at all: pure data and rules, without the store."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from longthread.errors import RoleMissing, ScopeMissing

UserRole = Literal["admin", "builder", "member"]
ROLES: tuple[UserRole, ...] = ("member", "builder", "admin")
"""The roles, each with all rights of those before it."""
KeyScope = Literal["chat", "read", "memories", "sources", "catalog", "gateway", "mcp", "admin"]
SCOPES: tuple[KeyScope, ...] = ("chat", "read", "memories", "sources", "catalog", "gateway", "mcp", "admin")
"""What an API key may be for. `read`: conversations and what they hold; `chat`: asking, which reads, too."""
Via = Literal["local", "session", "key", "proxy", "token"]
"""How a caller was recognized: as the user of the server's own machine, by a session, an API key, a trusted proxy's
header, or the one token of a server without login."""
PROJECT = "project:"
"""The prefix of the `user_id` of a project's conversations and memories."""
_INCLUDED: dict[KeyScope, frozenset[KeyScope]] = {"chat": frozenset({"read"})}
_PLURALS = {"admin": "administrators", "builder": "builders and administrators", "member": "users"}


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """What an API key is limited to. None: no limit of the key's own."""

    id: str
    scopes: frozenset[KeyScope]
    agents: frozenset[str] | None = None
    models: frozenset[str] | None = None
    sources: frozenset[str] | None = None
    requests_per_minute: int | None = None
    parallel: int | None = None

    def allows_model(self, *names: str) -> bool:
        """Whether the key may use a model that has these names. A limit that ends in `*` is of all that begin so."""
        if self.models is None:
            return True
        begins = tuple(each.removesuffix("*") for each in self.models if each.endswith("*"))
        return any(name in self.models or (begins and name.startswith(begins)) for name in names)


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller. `user` is whose conversations and memories the caller has; `groups` are the ids of groups.

    `is_local` is the user of the server's own machine, who may do all that the command line does, powers of tools
    included. `projects` are the ids of projects that the caller is a member of, each with the right `use` or `manage`.
    """

    user: str
    name: str
    role: UserRole
    via: Via
    groups: frozenset[str] = frozenset()
    group_names: frozenset[str] = frozenset()
    is_local: bool = False
    key: KeyLimits | None = None
    session: str | None = None
    """The hash of the session's id."""
    issuer: str | None = None
    """The login provider where the session began, by its id."""
    projects: tuple[tuple[str, str], ...] = ()

    def has_role(self, role: UserRole) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)

    def expect_role(self, role: UserRole) -> None:
        """Raise RoleMissing: the caller has a lower role."""
        if not self.has_role(role):
            raise RoleMissing(needed=_PLURALS[role])

    def has_scope(self, scope: KeyScope) -> bool:
        """Whether the caller's key is for this; without a key all is."""
        if self.key is None:
            return True
        return any(scope == each or scope in _INCLUDED.get(each, ()) for each in self.key.scopes)

    def expect_scope(self, scope: KeyScope | None) -> None:
        """Raise ScopeMissing: the caller's key is not for this. None: no key is, only a login."""
        if self.key is not None and (scope is None or not self.has_scope(scope)):
            raise ScopeMissing(scope=scope or "login")


def local_principal(user: str, *, is_owner: bool) -> Principal:
    """Return the caller of a server without login: the user of its settings. Only the owner, who comes straight from
    the server's machine, has the role `admin`."""
    return Principal(user, user, "admin" if is_owner else "member", "local", is_local=is_owner)


def parse_scopes(given: Collection[str]) -> frozenset[KeyScope]:
    """Return scopes. Raises ValueError: one is unknown."""
    if unknown := sorted(set(given) - set(SCOPES)):
        raise ValueError(f"{', '.join(unknown)} is no scope; there are {', '.join(SCOPES)}")
    return frozenset(each for each in SCOPES if each in given)
