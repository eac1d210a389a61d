"""Links by which anybody may read a conversation up to a message, or a board as it was when the link was made.
Of a link's token only a hash is stored."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from longthread.errors import BoardFull, ShareNotFound
from longthread.model.ids import new_id
from longthread.store import log
from longthread.store.boards import BoardCard, cards_of
from longthread.store.driver import Row, Transaction, one
from longthread.store.log import now
from longthread.store.rows import decoder, dump

_BYTES = 32
"""Of a token: too many to guess."""


@dataclass(frozen=True, slots=True)
class ShareLink:
    """A link to the branch of a user's thread that ends in entry `tip`. It is of no use from `expires_at` on.

    `run_id` is the run that the branch ended with when the link was made: one that failed at once has no entry. None
    where no run had begun, and in older links.
    """

    id: str
    thread_id: str
    user_id: str
    tip: int
    run_id: str | None
    created_at: datetime
    expires_at: datetime | None


async def create(
    tx: Transaction, thread_id: str, *, user_id: str, tip: int, run_id: str | None, expires_at: datetime | None
) -> tuple[ShareLink, str]:
    """Return a new link and its token, which can never be read again. The caller has checked access."""
    token = new_token()
    link = ShareLink(new_id(), thread_id, user_id, tip, run_id, datetime.fromisoformat(now()), expires_at)
    await tx.run("delete_expired_shares", thread_id=thread_id, now=now())
    await tx.run(
        "insert_share",
        thread_id=thread_id,
        id=link.id,
        token_hash=hash_token(token),
        user_id=user_id,
        tip=tip,
        run_id=run_id,
        created_at=_text(link.created_at),
        expires_at=None if expires_at is None else _text(expires_at),
    )
    return link, token


async def of_thread(tx: Transaction, thread_id: str) -> list[ShareLink]:
    """Return a thread's links that have not expired, the first first."""
    return [_link(row) for row in await tx.fetch("select_shares", thread_id=thread_id, now=now())]


async def find(tx: Transaction, token: str) -> ShareLink:
    """Return the link of a token. Raises `ShareNotFound`: there is none, or it has expired or was revoked."""
    row = await one(tx, "select_share", token_hash=hash_token(token), now=now())
    if row is None:
        raise ShareNotFound
    return _link(row)


async def revoke(tx: Transaction, thread_id: str, link_id: str, *, user_id: str) -> None:
    """Delete a link. Raises `ThreadNotFound`, or `ShareNotFound`."""
    await log.find_thread(tx, thread_id, user_id=user_id)
    if not await tx.run("delete_share", thread_id=thread_id, id=link_id):
        raise ShareNotFound


def new_token() -> str:
    """Return a token of a new link, too random to guess."""
    return secrets.token_urlsafe(_BYTES)


def hash_token(token: str) -> str:
    """Return what is stored of a token."""
    # Tokens are random: a slow hash would protect nothing.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def _link(row: Row) -> ShareLink:
    expires = row["expires_at"]
    return ShareLink(
        id=row["id"],
        thread_id=row["thread_id"],
        user_id=row["user_id"],
        tip=int(row["tip"]),
        run_id=row["run_id"],
        created_at=datetime.fromisoformat(row["created_at"]),
        expires_at=datetime.fromisoformat(expires) if expires else None,
    )


MOST_LINKS = 20


@dataclass(frozen=True, slots=True)
class BoardLink:
    """A link to a board as it was at `created_at`. It is of no use from `expires_at` on."""

    id: str
    created_at: datetime
    expires_at: datetime | None


async def cards_to_show(tx: Transaction, board_id: str) -> list[BoardCard]:
    """Return a board's cards for a link, and lock the conversations that they come from, so that none is forgotten
    before the link is stored. The caller has locked the board."""
    for row in await tx.fetch("select_threads_of_board", board_id=board_id):
        await tx.fetch("select_position", id=row["asked_in"])  # locks it
    return await cards_of(tx, board_id)


async def create_for_board(
    tx: Transaction, board_id: str, shown: Mapping[str, Any], *, user_id: str, expires_at: datetime | None
) -> tuple[BoardLink, str]:
    """Return a new link to what is `shown` of the board's cards (see `cards_to_show`), and its token, which can never
    be read again. The caller has locked the board. Raises BoardFull: it has too many."""
    token = new_token()
    link = BoardLink(new_id(), datetime.fromisoformat(now()), expires_at)
    await tx.run("delete_expired_board_links", board_id=board_id, now=now())
    if len(await of_board(tx, board_id)) >= MOST_LINKS:
        raise BoardFull(what="links to this board", most=MOST_LINKS)
    await tx.run(
        "insert_board_link",
        id=link.id,
        board_id=board_id,
        user_id=user_id,
        token_hash=hash_token(token),
        shown=dump(shown),
        created_at=_text(link.created_at),
        expires_at=None if expires_at is None else _text(expires_at),
    )
    await tx.run("insert_board_link_threads", link_id=link.id, board_id=board_id)
    return link, token


async def of_board(tx: Transaction, board_id: str) -> list[BoardLink]:
    """Return a board's links that have not expired, the first first."""
    return [_board_link(row) for row in await tx.fetch("select_board_links", board_id=board_id, now=now())]


async def read_board(tx: Transaction, token: str) -> Mapping[str, Any]:
    """Return what a link shows. Raises `ShareNotFound`: there is none, or it has expired or was revoked."""
    row = await one(tx, "select_board_link", token_hash=hash_token(token), now=now())
    if row is None:
        raise ShareNotFound
    return _decode_shown(row)


async def revoke_of_board(tx: Transaction, board_id: str, link_id: str) -> None:
    """Delete a link. Raises `ShareNotFound`."""
    if not await tx.run("delete_board_link", board_id=board_id, id=link_id):
        raise ShareNotFound


@decoder
def _decode_shown(row: Row) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(row["shown"])
    return found


@decoder
def _board_link(row: Row) -> BoardLink:
    expires = row["expires_at"]
    return BoardLink(
        id=row["id"],
        created_at=datetime.fromisoformat(row["created_at"]),
        expires_at=datetime.fromisoformat(expires) if expires else None,
    )
