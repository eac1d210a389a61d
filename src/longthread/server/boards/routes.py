"""Boards of saved results: cards with their queries, rows and parameters."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr, StringConstraints

from longthread.errors import (
    BoardFull,
    BoardNotFound,
    CardNotFound,
    EntryNotFound,
    InvalidInput,
    NotSavable,
    ResultTooLong,
    SourceError,
    SourceMissing,
    ThreadNotFound,
)
from longthread.runs.services.boards import SavedLook
from longthread.runs.services.results import FileRequest
from longthread.server.boards.answers import (
    BoardList,
    BoardSummary,
    BoardView,
    CardView,
    board_view,
    card_view,
    summary_of,
)
from longthread.server.fields import WHOLE, Name, PlainText
from longthread.server.http.file_name import content_disposition
from longthread.server.openapi import problems
from longthread.server.paths import PathSegment
from longthread.server.requests import NO_STORE
from longthread.server.routes.results import FILES, TYPES, chunks
from longthread.server.state import Caller, ServedDep
from longthread.store.boards import boards
from longthread.store.boards.boards import BoardChange, CardParameter, ParameterKind, RefreshInterval
from longthread.store.rows import dump
from longthread.tools.analysis.export.table import TableFormat

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
    """Change a board's title, schedule, values of parameters or order of cards. Its cards keep their rows until they
    are refreshed."""
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
async def save_card(served: ServedDep, user: Caller, board_id: PathSegment, body: CardBody) -> CardView:
    """Save a step's result with its question, query and source. One that the step keeps whole is not read again."""
    shown = SavedLook(body.title, _bound_look(body.look))
    card = await served.analyst.boards.save(board_id, body.thread_id, body.step, shown, user_id=user)
    return card_view(card, {})


@router.post("/boards/{board_id}/cards/{card_id}/refresh", responses=problems(BoardNotFound, CardNotFound))
async def refresh_card(served: ServedDep, user: Caller, board_id: PathSegment, card_id: PathSegment) -> CardView:
    """Run a card's query again, by the rules of its source. If that fails, its rows stay and `error` says why."""
    card = await served.analyst.boards.refresh(board_id, card_id, user_id=user)
    async with served.analyst.store.reading() as tx:
        board = await boards.find(tx, board_id, user_id=user)
    return card_view(card, board.given)


@router.patch(
    "/boards/{board_id}/cards/{card_id}",
    responses=problems(BoardNotFound, CardNotFound, InvalidInput, SourceError, SourceMissing, body=True),
)
async def change_card(
    served: ServedDep, user: Caller, board_id: PathSegment, card_id: PathSegment, body: CardPatch
) -> CardView:
    """Change how a card is shown, or what it asks. A query that is refused or fails changes nothing."""
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
        await served.analyst.boards.ask_anew(board_id, card_id, body.sql or card.sql, parameters, user_id=user)
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
    board_id: PathSegment,
    card_id: PathSegment,
    format_: Annotated[TableFormat, Query(alias="format")] = TableFormat.XLSX,
) -> Response:
    """All rows of a card, as a file. What the card does not keep is read from its source again."""
    with ExitStack() as stack:
        made = stack.enter_context(tempfile.TemporaryFile())
        card = await served.analyst.boards.write(board_id, card_id, made, FileRequest(format_), user_id=user)
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
