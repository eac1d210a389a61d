"""Logins of browsers, and links that work once. Of a session's id and of a link's token only a hash is stored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from longthread.access.principal import Via
from longthread.access.users import User, find_user
from longthread.errors import LinkUnusable
from longthread.store.driver import Row, Transaction, one
from longthread.store.log import now
from longthread.store.share_links import hash_token, new_token

SLIDING, ABSOLUTE = timedelta(days=14), timedelta(days=90)
"""How long a session lasts without a request, and in any case."""
MOST_SESSIONS = 100
"""Of a user: a login beyond them ends the one that was used least recently."""
_NOTED = timedelta(minutes=5)
"""How often the use of a session is written."""
LinkKind = Literal["setup", "invitation", "reset"]
SETUP_LASTS, INVITATION_LASTS = timedelta(hours=1), timedelta(hours=24)
_AGENT_CHARS = 300


@dataclass(frozen=True, slots=True)
class LoginSession:
    """A login. `id` is the hash of what the browser sends. `issuer` is the login provider where it began, by its id."""

    id: str
    user_id: str
    made_at: datetime
    seen_at: datetime
    ends_at: datetime
    address: str
    agent: str
    via: Via
    issuer: str | None


async def begin_session(
    tx: Transaction,
    user: User,
    *,
    via: Via = "session",
    address: str = "",
    agent: str = "",
    issuer: str | None = None,
    lasts: timedelta = ABSOLUTE,
) -> str:
    """Return the id of a new session, which is given to the browser and not stored."""
    token, at = new_token(), datetime.now(UTC)
    await tx.run("delete_ended_sessions", now=now())
    await tx.run(
        "insert_session",
        id_hash=hash_token(token),
        user_id=user.id,
        now=now(),
        expires_at=_text(at + min(SLIDING, lasts)),
        ends_at=_text(at + lasts),
        address=address,
        agent=agent[:_AGENT_CHARS],
        via=via,
        issuer=issuer,
    )
    for row in (await tx.fetch("select_sessions", user_id=user.id, now=now()))[MOST_SESSIONS:]:
        await end_session(tx, row["id_hash"])
    await tx.run("touch_user", user_id=user.id, now=now())
    return token


async def find_session(tx: Transaction, token: str) -> LoginSession | None:
    """Return the session of what a browser sent; None: there is none, or it has ended."""
    row = await one(tx, "select_session", id_hash=hash_token(token), now=now())
    return None if row is None else _session(row)


async def list_sessions(tx: Transaction, user_id: str) -> list[LoginSession]:
    return [_session(row) for row in await tx.fetch("select_sessions", user_id=user_id, now=now())]


def needs_touch(session: LoginSession) -> bool:
    """Whether it is time to write that the session is in use."""
    return datetime.now(UTC) - session.seen_at > _NOTED


async def touch_session(tx: Transaction, session: LoginSession) -> None:
    """Move the end of a session that is in use."""
    await tx.run(
        "touch_session",
        id_hash=session.id,
        now=now(),
        expires_at=_text(min(datetime.now(UTC) + SLIDING, session.ends_at)),
    )
    await tx.run("touch_user", user_id=session.user_id, now=now())


async def end_session(tx: Transaction, session_id: str) -> bool:
    """End a session by the hash of its id. Return whether there was one."""
    return bool(await tx.run("delete_session", id_hash=session_id))


async def end_sessions(tx: Transaction, user_id: str, *, kept: str = "") -> int:
    """End a user's sessions but the `kept` one. Return their number."""
    return await tx.run("delete_sessions_of_user", user_id=user_id, kept=kept)


async def create_link(tx: Transaction, kind: LinkKind, user: User | None = None) -> str:
    """Return the token of a link by which a user sets a password, once. Earlier links of the user stop working."""
    token, lasts = new_token(), SETUP_LASTS if kind == "setup" else INVITATION_LASTS
    if user is not None:
        await tx.run("delete_links_of_user", user_id=user.id)
    expires_at = _text(datetime.now(UTC) + lasts)
    user_id = user.id if user is not None else None
    await tx.run(
        "save_link", token_hash=hash_token(token), kind=kind, user_id=user_id, now=now(), expires_at=expires_at
    )
    return token


def link_path(token: str) -> str:
    """Return where a browser opens a link: the part after `#` is sent to no server and to no log."""
    return f"/login#{token}"


async def create_setup_link(tx: Transaction) -> str | None:
    """Return the token of the setup link; None if another server has made one that still works."""
    row = await one(tx, "select_setup_link")
    if row is not None and datetime.fromisoformat(row["expires_at"]) > datetime.now(UTC):
        return None
    await tx.run("delete_setup_link")
    token = await create_link(tx, "setup")
    # Two servers may have come this far: one of them has written the row.
    written = await one(tx, "select_link", token_hash=hash_token(token), now=now())
    return token if written is not None else None


async def use_link(tx: Transaction, token: str) -> tuple[LinkKind, User | None]:
    """Use a link up. Return its kind, and whose it is. Raises LinkUnusable."""
    row = await one(tx, "select_link", token_hash=hash_token(token), now=now())
    if row is None or not await tx.run("delete_link", token_hash=hash_token(token), now=now()):
        raise LinkUnusable
    user = await find_user(tx, row["user_id"]) if row["user_id"] is not None else None
    if user is not None and user.status == "disabled":
        raise LinkUnusable
    return row["kind"], user


async def peek_link(tx: Transaction, token: str) -> tuple[LinkKind, User | None]:
    """Return what a link is for, and leave it. Raises LinkUnusable."""
    row = await one(tx, "select_link", token_hash=hash_token(token), now=now())
    if row is None:
        raise LinkUnusable
    return row["kind"], await find_user(tx, row["user_id"]) if row["user_id"] is not None else None


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")


def _session(row: Row) -> LoginSession:
    return LoginSession(
        id=row["id_hash"],
        user_id=row["user_id"],
        made_at=datetime.fromisoformat(row["made_at"]),
        seen_at=datetime.fromisoformat(row["seen_at"]),
        ends_at=datetime.fromisoformat(row["ends_at"]),
        address=row["address"],
        agent=row["agent"],
        via=row["via"],
        issuer=row["issuer"],
    )
