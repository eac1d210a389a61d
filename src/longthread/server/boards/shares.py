"""Links by which others read a board as it was when the link was made."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

from fastapi import APIRouter, Response

from longthread.errors import BoardFull, BoardNotFound, NothingOnBoard, ShareNotFound
from longthread.server.boards.answers import SharedBoard, shared_card
from longthread.server.openapi import problems
from longthread.server.paths import PathSegment
from longthread.server.routes.shares import ShareBody
from longthread.server.share_answers import ShareList, ShareMade, ShareView
from longthread.server.state import Caller, ServedDep
from longthread.store.boards import boards, links
from longthread.store.boards.links import BoardLink

router = APIRouter(prefix="/api", tags=["boards"])


@router.post(
    "/boards/{board_id}/shares",
    status_code=201,
    responses=problems(BoardFull, BoardNotFound, NothingOnBoard, body=True),
)
async def share_board(
    served: ServedDep, user: Caller, board_id: PathSegment, body: ShareBody | None = None
) -> ShareMade:
    """Make a link by which anybody who reaches this server may read the board with the rows that it has now. It is
    given once: only a hash of it is stored."""
    until = body.moment if body is not None else None
    async with served.analyst.store.writing() as tx:
        board = await boards.lock(tx, board_id, user_id=user)
        cards = await links.cards_to_show(tx, board_id)
        if not cards:
            raise NothingOnBoard
        shown: SharedBoard = {
            "title": board.title,
            "shared_at": datetime.now(UTC).isoformat(),
            "cards": [shared_card(card, board.given) for card in cards],
        }
        link, token = await links.create(tx, board_id, shown, user_id=user, expires_at=until)
    return {**_view(link), "token": token, "path": f"/s/b/{token}"}


@router.get("/boards/{board_id}/shares", responses=problems(BoardNotFound, reads=True))
async def board_shares(served: ServedDep, user: Caller, board_id: PathSegment) -> ShareList:
    """The links to a board that work, without their tokens."""
    async with served.analyst.store.reading() as tx:
        await boards.find(tx, board_id, user_id=user)
        return {"shares": [_view(link) for link in await links.of_board(tx, board_id)]}


@router.delete(
    "/boards/{board_id}/shares/{share_id}", status_code=204, responses=problems(BoardNotFound, ShareNotFound)
)
async def revoke_board_share(served: ServedDep, user: Caller, board_id: PathSegment, share_id: PathSegment) -> Response:
    """Revoke a link: it shows nothing any more."""
    async with served.analyst.store.writing() as tx:
        await boards.lock(tx, board_id, user_id=user)
        await links.revoke(tx, board_id, share_id)
    return Response(status_code=204)


@router.get("/shared/boards/{token}", responses=problems(ShareNotFound, reads=True))
async def shared_board(served: ServedDep, response: Response, token: PathSegment) -> SharedBoard:
    """What a link to a board shows. Nothing is queried for it."""
    response.headers["Cache-Control"] = "no-store"
    async with served.analyst.store.reading() as tx:
        return cast(SharedBoard, await links.read(tx, token))


def _view(link: BoardLink) -> ShareView:
    return {
        "id": link.id,
        "created_at": link.created_at.isoformat(),
        "expires_at": link.expires_at.isoformat() if link.expires_at is not None else None,
    }
