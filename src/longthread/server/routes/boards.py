"""Boards of saved results: cards with their queries, rows and parameters, and links by which others read a board."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr, StringConstraints
from typing_extensions import TypedDict

from longthread.access import audit
from longthread.errors import (
    BoardFull,
    BoardNotFound,
    CardNotFound,
    EntryNotFound,
    InvalidInput,
    NothingOnBoard,
    NotSavable,
    ResultTooLong,
    ShareNotFound,
    SourceError,
    SourceMissing,
    ThreadNotFound,
)
from longthread.runs.services.boards import SavedLook
from longthread.runs.services.results import FileRequest
from longthread.server.answers import JsonObject, Timestamp
from longthread.server.fields import WHOLE, Name, PathSegment, PlainText, content_disposition
from longthread.server.openapi import problems
from longthread.server.requests import NO_STORE
from longthread.server.routes.chat import FILES, TYPES, chunks
from longthread.server.routes.shares import ShareBody, ShareList, ShareMade, ShareView
from longthread.server.state import Caller, Granted, PrincipalDep, ServedDep, acting_user
from longthread.store import boards, share_links
from longthread.store.boards import Board, BoardCard, BoardChange, CardParameter, ParameterKind, RefreshInterval
from longthread.store.rows import dump
from longthread.store.share_links import BoardLink
from longthread.tools.analysis.export import TableFormat


class BoardSummary(TypedDict):
    """A board in a list. `cards` is their number."""

    id: str
    title: str
    cards: int
    refresh_every: RefreshInterval | None
    created_at: Timestamp
    updated_at: Timestamp


class BoardList(TypedDict):
    boards: list[BoardSummary]


class ParameterView(TypedDict):
    """A parameter `{{name}}` of a query, with its value. People read `label`, or the name if it is empty."""

    name: str
    label: str
    kind: ParameterKind
    value: str | int | float


class CardResult(TypedDict):
    """The rows that a card keeps. `total` counts all, null where they were not counted to the end. `formats` are those
    that the source told."""

    columns: list[str]
    rows: list[list[Any]]
    total: int | None
    formats: JsonObject


class SharedCard(TypedDict):
    """A card as a link shows it. `parameters` have the values that its rows were read with."""

    id: str
    title: str
    question: str
    sql: str
    parameters: list[ParameterView]
    look: JsonObject
    result: CardResult
    read_at: Timestamp


class CardView(SharedCard):
    """A saved result. `parameters` have the values that hold now, `values_read` are those that its rows were read with,
    by name: they differ until a refresh succeeds. `thread_id` and `message` lead to its conversation; null if that is
    deleted. `error` says why the last refresh failed: `{type, message, params}`."""

    values_read: dict[str, str | int | float]
    thread_id: str | None
    message: str | None
    source: str | None
    error: JsonObject | None


class BoardView(TypedDict):
    """A board with its cards in their order."""

    id: str
    title: str
    refresh_every: RefreshInterval | None
    created_at: Timestamp
    updated_at: Timestamp
    cards: list[CardView]


class SharedBoard(TypedDict):
    """A board as it was at `shared_at`, to read."""

    title: str
    shared_at: Timestamp
    cards: list[SharedCard]


def summary_of(board: Board) -> BoardSummary:
    """Return a board as a list has it."""
    return {
        "id": board.id,
        "title": board.title,
        "cards": board.cards,
        "refresh_every": board.refresh_every,
        "created_at": board.created_at.isoformat(),
        "updated_at": board.updated_at.isoformat(),
    }


def board_view(board: Board, cards: Sequence[BoardCard]) -> BoardView:
    """Return a board with its cards."""
    return {
        "id": board.id,
        "title": board.title,
        "refresh_every": board.refresh_every,
        "created_at": board.created_at.isoformat(),
        "updated_at": board.updated_at.isoformat(),
        "cards": [card_view(card, board.given) for card in cards],
    }


def card_view(card: BoardCard, given: Mapping[str, Any]) -> CardView:
    """Return a card as its owner sees it."""
    return {
        **shared_card(card, given),
        "parameters": _views(card.values(given)),
        "values_read": {each.name: each.value for each in card.values_read(given)},
        "thread_id": card.thread_id,
        "message": card.entry_id if card.thread_id is not None else None,
        "source": card.source,
        "error": dict(card.error) if card.error is not None else None,
    }


def shared_card(card: BoardCard, given: Mapping[str, Any]) -> SharedCard:
    """Return a card as others see it: without where its source is, which errors may name too."""
    data = card.result
    return {
        "id": card.id,
        "title": card.title,
        "question": card.question,
        "sql": card.sql,
        "parameters": _views(card.values_read(given)),
        "look": dict(card.look),
        "result": {
            "columns": data["columns"],
            "rows": data["rows"],
            "total": data.get("total"),
            "formats": data.get("formats") or {},
        },
        "read_at": card.read_at.isoformat(),
    }


def _views(parameters: Sequence[CardParameter]) -> list[ParameterView]:
    return [{"name": each.name, "label": each.label, "kind": each.kind, "value": each.value} for each in parameters]


router = APIRouter(prefix="/api", tags=["boards"])

_LONGEST_SQL, _LONGEST_LOOK, _MOST_PARAMETERS = 20_000, 20_000, 20
Title = Annotated[Name, StringConstraints(max_length=200)]
"""What a board or a card is called."""
Look = Annotated[dict[str, Any], Field(max_length=20)]
"""How a card is shown; the page's own, kept as it is."""
SqlText = Annotated[PlainText, StringConstraints(min_length=1, max_length=_LONGEST_SQL)]
ParameterName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=40)]
ParameterValue = StrictStr | StrictInt | StrictFloat


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class BoardBody(_Body):
    """A new board."""

    title: Title


class BoardPatch(_Body):
    """What changes of a board. `refresh_every` null: by hand. `given` are values of parameters, `order` the ids of its
    cards."""

    title: Title | None = None
    refresh_every: RefreshInterval | None = None
    given: Annotated[dict[ParameterName, ParameterValue], Field(max_length=_MOST_PARAMETERS)] = {}
    order: Annotated[list[PlainText], Field(max_length=boards.MOST_CARDS)] | None = None


class CardBody(_Body):
    """A result to save: that of a step. By default its card is called as the question."""

    thread_id: PlainText
    step: Annotated[int, Field(ge=0, le=2**53), WHOLE]
    title: Title | None = None
    look: Look = {}


class ParameterBody(_Body):
    """A place `{{name}}` in the query, and the value that holds where the board gives no other."""

    name: ParameterName
    kind: ParameterKind
    value: ParameterValue
    label: Annotated[PlainText, StringConstraints(max_length=60)] = ""


class CardPatch(_Body):
    """What changes of a card. Another `sql`, or other `parameters`, are run at once."""

    title: Title | None = None
    look: Look | None = None
    sql: SqlText | None = None
    parameters: Annotated[list[ParameterBody], Field(max_length=_MOST_PARAMETERS)] | None = None


@router.get("/boards", responses=problems(reads=True))
async def list_boards(served: ServedDep, user: Caller) -> BoardList:
    """The caller's boards, the first first."""
    async with served.analyst.store.reading() as tx:
        return {"boards": [summary_of(each) for each in await boards.of_user(tx, user)]}


@router.post("/boards", status_code=201, responses=problems(BoardFull, body=True))
async def create_board(served: ServedDep, user: Caller, body: BoardBody) -> BoardSummary:
    """Make an empty board."""
    async with served.analyst.store.writing() as tx:
        return summary_of(await boards.create(tx, body.title, user_id=user))


@router.get("/boards/{board_id}", responses=problems(BoardNotFound, reads=True))
async def read_board(served: ServedDep, user: Caller, board_id: PathSegment) -> BoardView:
    """A board with the rows that its cards last read. Nothing is queried for it."""
    async with served.analyst.store.reading() as tx:
        board = await boards.find(tx, board_id, user_id=user)
        return board_view(board, await boards.cards_of(tx, board_id))


@router.patch("/boards/{board_id}", responses=problems(BoardNotFound, InvalidInput, body=True))
async def change_board(served: ServedDep, user: Caller, board_id: PathSegment, body: BoardPatch) -> BoardView:
    """Change a board's title, schedule, values of parameters or order of cards. Its cards keep their rows until
    they are refreshed. `given` are values of parameters by name, `order` the ids of its cards."""
    every: RefreshInterval | Literal[""] | None = body.refresh_every
    if every is None and "refresh_every" in body.model_fields_set:
        every = ""
    wanted = BoardChange(title=body.title, refresh_every=every, given=body.given, order=body.order)
    async with served.analyst.store.writing() as tx:
        await boards.change(tx, await boards.lock(tx, board_id, user_id=user), wanted)
        board = await boards.find(tx, board_id, user_id=user)
        return board_view(board, await boards.cards_of(tx, board_id))


@router.delete("/boards/{board_id}", status_code=204, responses=problems(BoardNotFound))
async def delete_board(served: ServedDep, user: Caller, board_id: PathSegment) -> Response:
    """Delete a board with its cards and the links to it."""
    async with served.analyst.store.writing() as tx:
        await boards.delete(tx, board_id, user_id=user)
    return Response(status_code=204)


@router.post(
    "/boards/{board_id}/cards",
    status_code=201,
    responses=problems(BoardFull, BoardNotFound, EntryNotFound, NotSavable, ThreadNotFound, body=True),
)
async def save_card(
    served: ServedDep, user: Caller, principal: PrincipalDep, board_id: PathSegment, body: CardBody
) -> CardView:
    """Save a step's result with its question, query and source. One that the step keeps whole is not read again."""
    shown = SavedLook(body.title, _bound_look(body.look))
    owner = await acting_user(served, principal, body.thread_id)
    whose: dict[str, Any] = {"user_id": user, "of_thread": owner}
    whose["rights"] = await served.analyst.runs.rights.of_caller(principal, user_id=owner)
    card = await served.analyst.boards.save(board_id, body.thread_id, body.step, shown, **whose)
    return card_view(card, {})


@router.post("/boards/{board_id}/cards/{card_id}/refresh", responses=problems(BoardNotFound, CardNotFound))
async def refresh_card(
    served: ServedDep, user: Caller, granted: Granted, board_id: PathSegment, card_id: PathSegment
) -> CardView:
    """Run a card's query again, by the rules of its source. If that fails, its rows stay and `error` says why."""
    card = await served.analyst.boards.refresh(board_id, card_id, user_id=user, rights=granted)
    async with served.analyst.store.reading() as tx:
        board = await boards.find(tx, board_id, user_id=user)
    return card_view(card, board.given)


@router.patch(
    "/boards/{board_id}/cards/{card_id}",
    responses=problems(BoardNotFound, CardNotFound, InvalidInput, SourceError, SourceMissing, body=True),
)
async def change_card(
    served: ServedDep, user: Caller, granted: Granted, board_id: PathSegment, card_id: PathSegment, body: CardPatch
) -> CardView:
    """Change how a card is shown, or what it asks. A query that is refused or fails changes nothing. Another `sql`,
    or other `parameters`, are run at once."""
    async with served.analyst.store.writing() as tx:
        await boards.lock(tx, board_id, user_id=user)
        card = await boards.find_card(tx, board_id, card_id)
        look = card.look if body.look is None else _bound_look(body.look)
    if body.sql is not None or body.parameters is not None:
        parameters = (
            card.parameters
            if body.parameters is None
            else [CardParameter(**each.model_dump()) for each in body.parameters]
        )
        whose: dict[str, Any] = {"user_id": user, "rights": granted}
        await served.analyst.boards.ask_anew(board_id, card_id, body.sql or card.sql, parameters, **whose)
    async with served.analyst.store.writing() as tx:
        board = await boards.find(tx, board_id, user_id=user)
        await boards.change_card(tx, board_id, card, title=body.title or card.title, look=look)
        return card_view(await boards.find_card(tx, board_id, card_id), board.given)


@router.delete("/boards/{board_id}/cards/{card_id}", status_code=204, responses=problems(BoardNotFound, CardNotFound))
async def delete_card(served: ServedDep, user: Caller, board_id: PathSegment, card_id: PathSegment) -> Response:
    """Take a card from its board."""
    async with served.analyst.store.writing() as tx:
        await boards.lock(tx, board_id, user_id=user)
        await boards.delete_card(tx, board_id, card_id)
    return Response(status_code=204)


@router.get(
    "/boards/{board_id}/cards/{card_id}/file",
    responses=problems(BoardNotFound, CardNotFound, InvalidInput, ResultTooLong, SourceError, SourceMissing, reads=True)
    | FILES,
    response_class=StreamingResponse,
)
async def card_file(
    served: ServedDep,
    user: Caller,
    granted: Granted,
    board_id: PathSegment,
    card_id: PathSegment,
    format_: Annotated[TableFormat, Query(alias="format")] = TableFormat.XLSX,
) -> Response:
    """All rows of a card, as a file. What the card does not keep is read from its source again."""
    with ExitStack() as stack:
        made = stack.enter_context(tempfile.TemporaryFile())
        whose: dict[str, Any] = {"user_id": user, "rights": granted}
        card = await served.analyst.boards.write(board_id, card_id, made, FileRequest(format_), **whose)
        made.seek(0)
        stack.pop_all()  # the answer closes it
    headers = {**NO_STORE, "Content-Disposition": content_disposition(card.title, format_, unnamed="result")}
    return StreamingResponse(chunks(made), media_type=TYPES[format_], headers=headers)


def _bound_look(look: dict[str, Any]) -> dict[str, Any]:
    """Raises InvalidInput: it is too long."""
    if len(dump(look)) > _LONGEST_LOOK:
        raise InvalidInput(
            reason=f"`look` may have {_LONGEST_LOOK:,} characters of JSON: leave the rows of a chart out."
        )
    return look


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
        cards = await share_links.cards_to_show(tx, board_id)
        if not cards:
            raise NothingOnBoard
        shown: SharedBoard = {
            "title": board.title,
            "shared_at": datetime.now(UTC).isoformat(),
            "cards": [shared_card(card, board.given) for card in cards],
        }
        link, token = await share_links.create_for_board(tx, board_id, shown, user_id=user, expires_at=until)
        await audit.note(tx, "share.make", board_id, link=link.id)
    return {**_view(link), "token": token, "path": f"/s/b/{token}"}


@router.get("/boards/{board_id}/shares", responses=problems(BoardNotFound, reads=True))
async def board_shares(served: ServedDep, user: Caller, board_id: PathSegment) -> ShareList:
    """The links to a board that work, without their tokens."""
    async with served.analyst.store.reading() as tx:
        await boards.find(tx, board_id, user_id=user)
        return {"shares": [_view(link) for link in await share_links.of_board(tx, board_id)]}


@router.delete(
    "/boards/{board_id}/shares/{share_id}", status_code=204, responses=problems(BoardNotFound, ShareNotFound)
)
async def revoke_board_share(served: ServedDep, user: Caller, board_id: PathSegment, share_id: PathSegment) -> Response:
    """Revoke a link: it shows nothing any more."""
    async with served.analyst.store.writing() as tx:
        await boards.lock(tx, board_id, user_id=user)
        await share_links.revoke_of_board(tx, board_id, share_id)
        await audit.note(tx, "share.revoke", board_id, link=share_id)
    return Response(status_code=204)


@router.get("/shared/boards/{token}", responses=problems(ShareNotFound, reads=True))
async def shared_board(served: ServedDep, response: Response, token: PathSegment) -> SharedBoard:
    """What a link to a board shows. Nothing is queried for it."""
    response.headers["Cache-Control"] = "no-store"
    async with served.analyst.store.reading() as tx:
        return cast(SharedBoard, await share_links.read_board(tx, token))


def _view(link: BoardLink) -> ShareView:
    return {
        "id": link.id,
        "created_at": link.created_at.isoformat(),
        "expires_at": link.expires_at.isoformat() if link.expires_at is not None else None,
    }
