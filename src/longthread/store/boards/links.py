"""Links by which anybody may read a board as it was when the link was made. Of a link's token only a hash is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from longthread.errors import BoardFull, ShareNotFound
from longthread.model.ids import new_id
from longthread.store.access.share_links import hash_token, new_token
from longthread.store.boards.boards import BoardCard, cards_of
from longthread.store.driver import Row, Transaction, one
from longthread.store.log import now
from longthread.store.rows import decoder, dump

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


async def create(
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
    return [_link(row) for row in await tx.fetch("select_board_links", board_id=board_id, now=now())]


async def read(tx: Transaction, token: str) -> Mapping[str, Any]:
    """Return what a link shows. Raises `ShareNotFound`: there is none, or it has expired or was revoked."""
    row = await one(tx, "select_board_link", token_hash=hash_token(token), now=now())
    if row is None:
        raise ShareNotFound
    return _shown(row)


async def revoke(tx: Transaction, board_id: str, link_id: str) -> None:
    """Delete a link. Raises `ShareNotFound`."""
    if not await tx.run("delete_board_link", board_id=board_id, id=link_id):
        raise ShareNotFound


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


@decoder
def _shown(row: Row) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(row["shown"])
    return found


@decoder
def _link(row: Row) -> BoardLink:
    expires = row["expires_at"]
    return BoardLink(
        id=row["id"],
        created_at=datetime.fromisoformat(row["created_at"]),
        expires_at=datetime.fromisoformat(expires) if expires else None,
    )
