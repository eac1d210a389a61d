"""The audit log: who did what about access, when and from where. It holds ids, never contents or secrets.

A request or a command says once who acts (`acting`). What it does then writes its rows with `note`, in the transaction
that does it. Where nothing said who acts, as on a server without login, `note` writes nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from longthread.access.principal import Principal
from longthread.errors import StoreError
from longthread.model.ids import new_id
from longthread.store.driver import Driver, Row, Transaction, one
from longthread.store.log import now

AuditAction = Literal[
    "login",
    "logout",
    "password.change",
    "link.make",
    "link.use",
    "session.end",
    "key.make",
    "key.revoke",
    "user.add",
    "user.change",
    "user.forget",
    "group.add",
    "group.delete",
    "member.add",
    "member.remove",
    "grant.add",
    "grant.remove",
    "catalog.change",
    "catalog.delete",
    "upload.add",
    "upload.delete",
    "share.make",
    "share.revoke",
    "project.change",
    "conversation.export",
    "conversation.delete",
    "approval.decide",
    "person.export",
    "audit.export",
    "admin.read",
]
ACTIONS: tuple[AuditAction, ...] = get_args(AuditAction)
AuditOutcome = Literal["done", "failed"]
PAGE_ROWS, MOST_ROWS = 100, 1000
_EXPIRES_EACH = 3600.0
_PSEUDONYM_SECRET = "audit"
_REQUEST_ID = re.compile(r"[\w.:-]{1,100}")
_acting: ContextVar[Acting | None] = ContextVar("acting", default=None)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Acting:
    """Who acts, how that was recognized, and from which address. An `actor` without a name is not logged in yet, or
    uses the command line. `on_behalf` is whose data it is, if another user's."""

    actor: str
    via: str
    address: str = ""
    request_id: str = ""
    on_behalf: str | None = None


@dataclass(frozen=True, slots=True)
class AuditRow:
    """What somebody did. `actor` is a user's id, or a pseudonym once the user is forgotten; `actor_name` is for people,
    None if there is no such user."""

    id: str
    at: datetime
    actor: str
    actor_name: str | None
    on_behalf: str | None
    via: str
    address: str
    action: str
    object: str
    outcome: str
    request_id: str
    detail: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "at": self.at.isoformat(),
            "actor": self.actor,
            "actor_name": self.actor_name,
            "on_behalf": self.on_behalf,
            "via": self.via,
            "address": self.address,
            "action": self.action,
            "object": self.object,
            "outcome": self.outcome,
            "request_id": self.request_id,
            "detail": dict(self.detail),
        }


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which rows are wanted: of a user, of an action, since and until a time. Empty: of all."""

    actor: str = ""
    action: str = ""
    since: datetime | None = None
    until: datetime | None = None


BY_COMMAND = Acting("", "command")
"""Who uses the command line on the store."""


def acting_as(principal: Principal | None, *, address: str, request_id: str | None) -> Acting:
    """Return who acts in a request. A `request_id` that is no id is replaced by a new one."""
    given = request_id if request_id is not None and _REQUEST_ID.fullmatch(request_id) else new_id()
    if principal is None:
        return Acting("", "", address, given)
    via = principal.via if principal.key is None else f"key {principal.key.id}"
    return Acting(principal.user, via, address, given)


@contextmanager
def acting(who: Acting | None) -> Iterator[None]:
    """Say who acts in this block; None: nothing that it does is noted."""
    before = _acting.set(who)
    try:
        yield
    finally:
        _acting.reset(before)


@contextmanager
def acting_for(user_id: str | None) -> Iterator[None]:
    """Say that what is done in this block is done with another user's data; None: with the own."""
    who = _acting.get()
    with acting(replace(who, on_behalf=user_id) if who is not None and user_id is not None else who):
        yield


async def note(
    tx: Transaction,
    action: AuditAction,
    object_: str = "",
    *,
    outcome: AuditOutcome = "done",
    actor: str | None = None,
    on_behalf: str | None = None,
    **detail: str | float | None,
) -> None:
    """Write a row of the audit log, in the transaction of what it is about. `object_` is the id of what was acted on.

    `detail` has words of this program, ids and numbers; never what a person wrote. `actor` is for a login, which makes
    a caller known.
    """
    who = _acting.get()
    if who is None:
        return
    await tx.run(
        "insert_audit",
        id=new_id(),
        at=now(),
        actor=who.actor if actor is None else actor,
        on_behalf=who.on_behalf if on_behalf is None else on_behalf,
        via=who.via,
        address=who.address,
        action=action,
        object=object_,
        outcome=outcome,
        request_id=who.request_id,
        detail=json.dumps(detail, separators=(",", ":"), sort_keys=True),
    )


async def note_alone(store: Driver, action: AuditAction, object_: str = "", **about: Any) -> None:
    """Write a row in a transaction of its own: of what failed, or was only read. `about` is as in `note`."""
    if _acting.get() is None:
        return
    async with store.writing() as tx:
        await note(tx, action, object_, **about)


async def list_rows(
    tx: Transaction, wanted: AuditFilter, *, before: str | None = None, limit: int = PAGE_ROWS
) -> list[AuditRow]:
    """Return rows, the newest first. `before` is the id of the last row of the page before."""
    rows = await tx.fetch(
        "select_audit",
        actor=wanted.actor,
        action=wanted.action,
        since=_format_moment(wanted.since, ""),
        until=_format_moment(wanted.until, _LATER),
        before=before or _LATER,
        limit=limit,
    )
    return [_read_row(row) for row in rows]


async def list_rows_about(tx: Transaction, user_id: str) -> list[AuditRow]:
    """Return what a user did, and what others did to the user or with the user's data, the newest first."""
    return [_read_row(row) for row in await tx.fetch("select_audit_about", user_id=user_id)]


async def forget_actor(tx: Transaction, user_id: str) -> int:
    """Replace a user by a pseudonym in all rows, without addresses and objects, and return their number. All
    rows of one person have the same pseudonym; only who has this store could compute it."""
    pseudonym = await make_pseudonym(tx, user_id)
    about = {"user_id": user_id, "pseudonym": pseudonym}
    await tx.run("forget_audit_detail", **about)
    return await tx.run("forget_actor", **about) + await tx.run("forget_audit_object", **about)


async def make_pseudonym(tx: Transaction, user_id: str) -> str:
    """Return what is left of a user who is forgotten: always the same, and only this store could compute it."""
    await tx.run("insert_secret", name=_PSEUDONYM_SECRET, secret=secrets.token_urlsafe(32), now=now())
    row = await one(tx, "select_secret", name=_PSEUDONYM_SECRET)
    assert row is not None
    return f"forgotten-{hmac.new(row['secret'].encode(), user_id.encode(), hashlib.sha256).hexdigest()[:24]}"


async def delete_old_rows(store: Driver, days: int) -> int:
    """Delete rows that are older than so many days, and return their number. Raises StoreError."""
    async with store.writing() as tx:
        return await tx.run("delete_old_audit", before=_format_moment(datetime.now(UTC) - timedelta(days=days), ""))


async def delete_old_rows_hourly(store: Driver, days: int) -> None:
    """Delete old rows each hour, until it is cancelled. A pass that fails is logged."""
    while True:
        try:
            if deleted := await delete_old_rows(store, days):
                _log.info("deleted %d old rows of the audit log", deleted)
        except StoreError as error:
            _log.warning("old rows of the audit log stay until the next pass: %s", error)
        await asyncio.sleep(_EXPIRES_EACH)


_LATER = "~"
"""After every id and every time."""


def _format_moment(moment: datetime | None, without: str) -> str:
    return without if moment is None else moment.astimezone(UTC).isoformat(timespec="microseconds")


def _read_row(row: Row) -> AuditRow:
    return AuditRow(
        id=row["id"],
        at=datetime.fromisoformat(row["at"]),
        actor=row["actor"],
        actor_name=row["actor_name"],
        on_behalf=row["on_behalf"],
        via=row["via"],
        address=row["address"],
        action=row["action"],
        object=row["object"],
        outcome=row["outcome"],
        request_id=row["request_id"],
        detail=json.loads(row["detail"]),
    )
